"""Published configurations, exported with random weights and compared with transformers.

Many configurations differ only in fields without effect. Of those that fillmask reads as the same
encoder, one is exported. The others must be the same model in transformers, weight by weight and
result by result.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from fillmask import FillMask
from fillmask_model.checkpoints.checkpoint import check_config
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.registry import find_family
from tests.model.tokenizers.tokenizer_directories import KINDS, Kind, load, read, write_directory
from tests.parity.served import TOLERANCE, export
from tests.published.references import write_random
from tests.published.shrinking import shrink

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parent / "configs"
TOP_K = 10
# kind of the tokenizer by model_type
_TOKENIZERS = {
    "albert": "ALBERT",
    "camembert": "CamemBERT",
    "data2vec-text": "RoBERTa",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "esm": "ESM-2",
    "esmc": "ESM-2",
    "eurobert": "ModernBERT",
    "gte": "XLM-RoBERTa",
    "modernbert": "ModernBERT",
    "mpnet": "MPNet",
    "new": "XLM-RoBERTa",
    "roberta": "RoBERTa",
    "roberta-prelayernorm": "RoBERTa",
    "ultrabert": "ModernBERT",
    "xlm-roberta": "XLM-RoBERTa",
    "xlm-roberta-xl": "XLM-RoBERTa",
}
# configurations of architectures that fillmask doesn't compute, with the start of the reason
OWN_CODE = "auto_map names the code .*, which fillmask never runs"
UNKNOWN_TYPE = "model_type must be one of"
REFUSED = {
    "AIRI-Institute/gena-lm-bert-large-t2t": OWN_CODE,
    "InstaDeepAI/nucleotide-transformer-v2-50m-multi-species": OWN_CODE,
    "Synthyra/ESMplusplus_small": UNKNOWN_TYPE,
    "Tochka-AI/ruRoPEBert-classic-base-512": OWN_CODE,
    "chandar-lab/AMPLIFY_120M": UNKNOWN_TYPE,
    "ibm/MoLFormer-XL-both-10pct": UNKNOWN_TYPE,
    "jinaai/jina-embeddings-v2-base-code": OWN_CODE,
    "jinaai/jina-embeddings-v2-small-en": OWN_CODE,
    "zhihan1996/DNABERT-2-117M": OWN_CODE,
    "zhiheng-huang/bert-large-uncased-whole-word-masking-embedding-relative-key-query": (
        "position_embedding_type must be 'absolute'"
    ),
}
SEED = 3


def published() -> list[dict[str, Any]]:
    """Return the published files: the id of the repository, its configuration and its tokenizer."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CONFIGS.glob("*.json"))]


def kind_of(one: dict[str, Any]) -> tuple[str, Kind]:
    """Return the model type of a published configuration and its kind of tokenizer."""
    model_type, _ = find_family(one["config"], one["id"])
    of_pieces = one["tokenizer"] == "wordpiece" and model_type == "roberta"
    return model_type, KINDS["BERT" if of_pieces else _TOKENIZERS.get(model_type, "BERT")]


def small(one: dict[str, Any], size: int, mask_id: int) -> dict[str, Any]:
    """Return the small form of a published configuration.

    Args:
        size: number of tokens.
    """
    given = one["config"].get("pad_token_id")
    ids = {"pad_token_id": given if given is not None and given < size else 1}
    if kind_of(one)[0] == "esm":
        ids["mask_token_id"] = mask_id
    return shrink(one["config"], size, ids)


def alike() -> list[list[dict[str, Any]]]:
    """Return the computed configurations in groups that fillmask reads as the same encoder."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for one in published():
        if one["id"] not in REFUSED:
            model_type, kind = kind_of(one)
            _, family = find_family(one["config"], one["id"])
            read_as = family.read(Fields(small(one, 300, 4)))
            table = one["config"].get("task_type_vocab_size")  # which the weights state
            groups.setdefault((model_type, kind, repr(read_as), table), []).append(one)
    return list(groups.values())


def test_unknown_architectures_are_refused(tmp_path: Path) -> None:
    refused = {one["id"]: one["config"] for one in published() if one["id"] in REFUSED}
    assert set(refused) == set(REFUSED)
    for name, config in refused.items():
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(CheckpointError, match=REFUSED[name]):
            check_config(tmp_path, name)


@pytest.mark.parametrize("group", alike(), ids=lambda group: f"{group[0]['id']}, {len(group)}")
def test_published_configurations_fill_as_transformers_does(
    group: list[dict[str, Any]], tmp_path: Path
) -> None:
    model_type, kind = kind_of(group[0])
    directory = tmp_path / "checkpoint"
    write_directory(directory, kind, fast=not kind.slow_only)
    tokenizer = load(read(directory, kind.model_type))
    mask_id, size = tokenizer.get_vocab()[kind.mask_token], tokenizer.get_vocab_size()
    config = small(group[0], size, mask_id)
    reference = write_random(directory, config, model_type, SEED)
    text = kind.around[0].replace("{}", kind.mask_token)
    if "model_type" not in config:
        (directory / "config.json").write_text(json.dumps(config | {"model_type": model_type}))
    texts = [kind.around[0].replace("{}", "A")]
    export(directory, tmp_path / "bundle", texts=texts, compares_tokens=True)
    encoded = tokenizer.encode(text).ids
    every = reference(encoded)
    expected = every[encoded.index(mask_id)]
    with FillMask(tmp_path / "bundle", threads=1) as model:
        fills = model.fill(text, top_k=TOP_K)
    assert len(fills) == TOP_K
    for fill in fills:
        assert fill.score == pytest.approx(math.exp(expected[fill.token]), abs=TOLERANCE)
    best = max(range(len(expected)), key=expected.__getitem__)
    assert expected[fills[0].token] >= expected[best] - TOLERANCE or best < 5
    weights = (directory / "model.safetensors").read_bytes()
    for other in group[1:]:
        reference = write_random(tmp_path / "other", small(other, size, mask_id), model_type, SEED)
        assert (tmp_path / "other" / "model.safetensors").read_bytes() == weights, other["id"]
        assert torch.equal(reference(encoded), every), other["id"]

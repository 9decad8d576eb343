"""Published configurations, exported with random weights, served and compared with transformers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from fillmask_export.commands import main as export_main
from fillmask_model.checkpoints.checkpoint import check_config
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.checkpoints.registry import find_family
from fillmask_model.tokenizers.loading import read_tokenizer_files
from tests.model.tokenizers.tokenizer_directories import KINDS, load, write_directory
from tests.published.references import write_random
from tests.published.shrinking import shrink

CONFIGS = Path(__file__).parent / "configs"
TOLERANCE = 1e-4  # scores, fp32 bundle against the reference on the same weights
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


def read_published(path: Path) -> dict[str, Any]:
    published: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return published


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_published_configuration_fills_as_transformers_does(path: Path, tmp_path: Path) -> None:
    published = read_published(path)
    if published["id"] in REFUSED:
        (tmp_path / "config.json").write_text(json.dumps(published["config"]))
        with pytest.raises(CheckpointError, match=REFUSED[published["id"]]):
            check_config(tmp_path, published["id"])
        return
    compare(published, tmp_path)


def compare(published: dict[str, Any], scratch: Path) -> None:
    """Export a random checkpoint with a published configuration and compare its fills."""
    model_type, _ = find_family(published["config"], published["id"])
    of_pieces = published["tokenizer"] == "wordpiece" and model_type == "roberta"
    kind = KINDS["BERT" if of_pieces else _TOKENIZERS.get(model_type, "BERT")]
    directory = scratch / "checkpoint"
    write_directory(directory, kind, fast=not kind.slow_only)
    files = read_tokenizer_files(directory, kind.model_type)
    assert files is not None
    tokenizer = load(files)
    mask_id = tokenizer.get_vocab()[kind.mask_token]
    size = tokenizer.get_vocab_size()
    given = published["config"].get("pad_token_id")
    ids = {"pad_token_id": given if given is not None and given < size else 1}
    if model_type == "esm":
        ids["mask_token_id"] = mask_id
    config = shrink(published["config"], size, ids)
    reference = write_random(directory, config, model_type, seed=len(published["id"]))
    text = kind.around[0].replace("{}", kind.mask_token)
    (scratch / "texts.txt").write_text(kind.around[0].replace("{}", "A"))
    options = ["--output", str(scratch / "bundle"), "--texts", str(scratch / "texts.txt")]
    if "model_type" not in config:
        (directory / "config.json").write_text(json.dumps(config | {"model_type": model_type}))
    assert export_main([str(directory), *options]) == 0
    encoded = tokenizer.encode(text).ids
    expected = reference(encoded)[encoded.index(mask_id)]
    with TestClient(create_app(Settings(bundle=scratch / "bundle", threads=1))) as client:
        body = {"inputs": text, "parameters": {"top_k": TOP_K}}
        fills = client.post("/fill-mask", json=body).json()
    assert len(fills) == TOP_K
    for fill in fills:
        assert fill["score"] == pytest.approx(math.exp(expected[fill["token"]]), abs=TOLERANCE)
    best = max(range(len(expected)), key=expected.__getitem__)
    assert expected[fills[0]["token"]] >= expected[best] - TOLERANCE or best < 5

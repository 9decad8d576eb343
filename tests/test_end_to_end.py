"""Fills of an exported checkpoint over HTTP, compared with transformers' pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from fillmask_export.commands import main as export_main
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.model.samples import VERSES

TOLERANCE = 1e-4  # scores, fp32 bundle against transformers on the same weights
TEXTS = [
    "the [MASK] sat on the mat",
    "[MASK]",
    "The CAT [MASK] on the mat, and the [MASK] lay by the door!",
    "a small bird sang in the tall tree until the sun went down [MASK]",
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a random BertForMaskedLM and its tokenizer, saved by transformers."""
    directory = tmp_path_factory.mktemp("hugging-face") / "bert"
    word_pieces = train_word_pieces(VERSES, vocab_size=120)
    names = ("unk", "sep", "pad", "cls", "mask")
    special = {f"{name}_token": f"[{name.upper()}]" for name in names}
    make_tokenizer: Any = transformers.PreTrainedTokenizerFast  # its constructor is untyped
    tokenizer = make_tokenizer(tokenizer_object=word_pieces, **special)
    tokenizer.save_pretrained(directory)
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=36,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=50,
        max_position_embeddings=40,
        initializer_range=0.3,
    )
    transformers.BertForMaskedLM(config).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def client(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Client of a service with the exported checkpoint."""
    scratch = tmp_path_factory.mktemp("bundle")
    sentences = scratch / "texts.txt"
    sentences.write_text("\n".join(VERSES))
    bundle = scratch / "bundle"
    arguments = [str(checkpoint), "--output", str(bundle), "--texts", str(sentences)]
    assert export_main(arguments) == 0
    with TestClient(create_app(Settings(bundle=bundle))) as client:
        yield client


@pytest.fixture(scope="module")
def pipeline(checkpoint: Path) -> Any:
    """Pipeline of transformers on the checkpoint's directory."""
    return transformers.pipeline("fill-mask", model=str(checkpoint), device="cpu")


def _by_token(fills: list[dict[str, Any]]) -> dict[int, float]:
    return {fill["token"]: fill["score"] for fill in fills}


@pytest.mark.parametrize("text", TEXTS)
def test_scores_are_the_pipelines(client: TestClient, pipeline: Any, text: str) -> None:
    # The comparison excludes special tokens.
    ours = client.post("/fill-mask", json={"inputs": text}).json()
    theirs = pipeline(text, top_k=10)
    special = set(pipeline.tokenizer.all_special_ids)
    masks = text.count("[MASK]")
    for our_fills, their_fills in zip(
        ours if masks > 1 else [ours], theirs if masks > 1 else [theirs], strict=True
    ):
        ordinary = [fill for fill in their_fills if fill["token"] not in special][:5]
        assert _by_token(our_fills) == pytest.approx(_by_token(ordinary), abs=TOLERANCE)
        assert [f["token_str"] for f in our_fills] == [f["token_str"] for f in ordinary]


def test_targets_score_as_in_the_pipeline(client: TestClient, pipeline: Any) -> None:
    text, targets = "the [MASK] sat on the mat", ["cat", "dog", "sea"]
    ours = client.post(
        "/fill-mask", json={"inputs": text, "parameters": {"targets": targets}}
    ).json()
    theirs = pipeline(text, targets=targets)
    assert _by_token(ours) == pytest.approx(_by_token(theirs), abs=TOLERANCE)
    assert [fill["token"] for fill in ours] == [fill["token"] for fill in theirs]

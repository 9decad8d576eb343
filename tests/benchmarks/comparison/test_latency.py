"""Texts and candidates of the latency comparison."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.comparison.http.contenders import OURS
from benchmarks.comparison.http.latency import (
    LENGTHS_TOKENS,
    TEXTS_PER_LENGTH,
    candidates,
    texts_of_length,
)
from benchmarks.comparison.workspace import Workspace
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.tokenization.tokenizer import Tokenizer


def test_texts_have_exactly_the_length() -> None:
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    for tokens in LENGTHS_TOKENS:
        texts = texts_of_length(tokenizer, tokens)
        assert len(set(texts)) == TEXTS_PER_LENGTH
        for text in texts:
            encoded = tokenizer.encode(text)
            assert len(encoded.input_ids) == tokens
            assert len(encoded.mask_positions) == 1


def test_every_candidate_uses_all_cpus_for_one_run() -> None:
    known = list(candidates(Workspace("minilm"), 4))
    assert {one.contender for one in known} == {
        *(*OURS, "transformers pipeline", "onnxruntime, gather graph"),
        *(f"OpenVINO {precision}, gather graph" for precision in ("fp32", "bf16", "int8")),
        "CTranslate2 int8",
    }
    assert len({(one.contender, one.label) for one in known}) == len(known) == 14
    for one in known:
        assert find_spec(one.command[2]) is not None
        if not one.contender.startswith("fillmask"):
            assert " --runs 1 --threads 4 " in f"{' '.join(one.command)} "

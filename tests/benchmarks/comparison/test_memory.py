"""Random request bodies and the growth of memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.comparison.http.memory import MAX_MASKS, MAX_TEXTS, MAX_TOP_K, Memory, random_bodies
from fillmask.bundles.bundle import read_bundle
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.tiny import MAX_TOKENS, write_bundle


@pytest.fixture
def bodies(tmp_path: Path) -> list[dict[str, object]]:
    bundle = read_bundle(write_bundle(tmp_path / "tiny").path)
    return [json.loads(body) for body in random_bodies(bundle, 200)]


def test_every_body_is_within_the_limits_and_all_shapes_occur(
    bodies: list[dict[str, list[str]]], tmp_path: Path
) -> None:
    bundle = read_bundle(tmp_path / "tiny")
    tokenizer = Tokenizer(
        bundle.tokenizer_path.read_bytes(), "[MASK]", bundle.mask_token_id, bundle.special_token_ids
    )
    encoded = [tokenizer.encode(text) for body in bodies for text in body["inputs"]]
    lengths = [len(text.input_ids) for text in encoded]
    assert max(lengths) <= MAX_TOKENS
    assert min(lengths) < 0.5 * max(lengths)
    assert {len(text.mask_positions) for text in encoded} == set(range(1, MAX_MASKS + 1))
    assert {len(body["inputs"]) for body in bodies} == set(range(1, MAX_TEXTS + 1))


def test_top_k_varies(bodies: list[dict[str, dict[str, int]]]) -> None:
    top_k = {body["parameters"]["top_k"] for body in bodies}
    assert len(top_k) > 20
    assert max(top_k) <= MAX_TOP_K


def test_growth_is_from_the_first_sample_to_the_last() -> None:
    # Growth from the lowest sample would include memory that the service uses only temporarily.
    samples = [(2000, 150), (4000, 120), (6000, 155)]
    assert Memory(name="m", ready_s=1, peak_rss_bytes=160, samples=samples).growth_bytes == 5

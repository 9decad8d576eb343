"""Built-in model: size, model card, everyday masks, and the same bits in any company."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from benchmarks.comparison.texts import masked_texts
from fillmask.app import create_app
from fillmask.bundles.bundle import WEIGHTS_FILE, Bundle, default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.linux import helper_threads
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.settings import Settings
from fillmask.tokenization.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """Client of a service with the built-in model."""
    with TestClient(create_app(Settings())) as client:
        yield client


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return read_bundle(default_bundle_path())


def test_prefers_words_to_what_looks_like_them(client: TestClient) -> None:
    # No training run has seen these sentences, whose wrong word resembles the right one.
    rows = Path(__file__).with_name("target_pairs.tsv").read_text(encoding="utf-8").splitlines()
    won = 0
    for text, fits, wrong in (row.split("\t") for row in rows):
        body = {"inputs": text, "parameters": {"targets": [fits, wrong]}}
        best = client.post("/fill-mask", json=body).json()[0]
        won += best["token_str"] == fits
    assert won >= 0.9 * len(rows)


def test_is_at_most_30_mb_and_carries_its_card(bundle: Bundle) -> None:
    directory = default_bundle_path()
    assert sum(file.stat().st_size for file in directory.iterdir()) <= 30e6
    card = (directory / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert bundle.name in card
    assert bundle.license != "unknown"


def test_holds_one_table(bundle: Bundle) -> None:
    # The limit of 1.125 bytes per parameter leaves no room for a second token embedding table.
    architecture = bundle.architecture
    assert architecture.tied
    table_bytes = architecture.vocab_size * architecture.d_model
    files = (bundle.model_path, bundle.path / WEIGHTS_FILE)
    assert sum(file.stat().st_size for file in files) <= 1.125 * architecture.parameters
    assert table_bytes > 0.125 * architecture.parameters


def test_threads_change_no_bit(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each text runs alone, on one thread and on two threads.
    monkeypatch.setattr(helper_threads, "_ACTIVE", helper_threads._ActiveRuns())
    single, double = Runtime(bundle.model_path), Runtime(bundle.model_path, 2)
    generator = np.random.default_rng(0)
    for length in (3, 16, 17, 64, 128, 200, 256):
        input_ids = generator.integers(1_000, bundle.architecture.vocab_size, length)
        positions = np.array([1, length - 2])
        batch = Batch.pack([ModelPass(input_ids, positions, 20, no_targets(2))])
        expected, found = single.run(batch), double.run(batch)
        assert (expected.threads, found.threads) == (1, 2)
        np.testing.assert_array_equal(found.top_ids, expected.top_ids)
        np.testing.assert_array_equal(found.top_log_probs, expected.top_log_probs)


@pytest.mark.parametrize("threads", [1, 2])
def test_neighbours_change_no_bit(bundle: Bundle, threads: int) -> None:
    # Every third held-out text, each in a batch of 2 to 13.
    runtime, tokenizer = Runtime(bundle.model_path, threads), Tokenizer.from_bundle(bundle)
    encoded = [tokenizer.encode(text) for text in masked_texts()[::3]]
    requests = [
        ModelPass(text.input_ids, text.mask_positions, 10, no_targets(len(text.mask_spans)))
        for text in encoded
        if len(text.input_ids) <= 64
    ]
    alone = [runtime.run(Batch.pack([request])) for request in requests]
    generator = np.random.default_rng(0)
    order = generator.permutation(len(requests)).tolist()
    while order:
        size = int(generator.integers(2, 14))
        members, order = order[:size], order[size:]
        batch = Batch.pack([requests[member] for member in members])
        for member, fills in zip(members, batch.unpack(runtime.run(batch)), strict=True):
            np.testing.assert_array_equal(fills.top_ids, alone[member].top_ids)
            np.testing.assert_array_equal(fills.top_log_probs, alone[member].top_log_probs)


def test_verification_figures_are_within_the_gates() -> None:
    verification = json.loads((default_bundle_path() / "bundle.json").read_text())["verification"]
    assert verification["graph"]["max_log_prob_difference"] <= 1e-3
    assert verification["graph"]["same_top_5"] is True
    assert verification["int8"]["top_1_agreement"] >= 0.95

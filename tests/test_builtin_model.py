"""Built-in model: size, model card and fills of everyday masks."""

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


@pytest.fixture(scope="module")
def runtime(bundle: Bundle) -> Runtime:
    """Runtime with one thread."""
    return Runtime(bundle.model_path)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("Paris is the [MASK] of France.", {"capital", "city"}),
        ("The [MASK] barked at the mailman.", {"dog"}),
        ("She drank a cup of [MASK].", {"tea", "coffee", "water", "wine", "milk"}),
    ],
)
def test_fills_everyday_masks(client: TestClient, text: str, accepted: set[str]) -> None:
    # An accepted word is among the first five fills.
    fills = client.post("/fill-mask", json={"inputs": text}).json()
    assert len(fills) == 5
    assert accepted & {fill["token_str"] for fill in fills}


def test_prefers_words_to_what_looks_like_them(client: TestClient) -> None:
    # No training run has seen these sentences, whose wrong word resembles the right one.
    rows = Path(__file__).with_name("target_pairs.tsv").read_text(encoding="utf-8").splitlines()
    won = 0
    for text, fits, wrong in (row.split("\t") for row in rows):
        body = {"inputs": text, "parameters": {"targets": [fits, wrong]}}
        best = client.post("/fill-mask", json=body).json()[0]
        won += best["token_str"] == fits
    assert won >= 0.9 * len(rows)


@pytest.mark.parametrize("target", ["photosynthesis", "a chemical reaction"])
def test_targets_are_scored_as_by_one_pass_a_token(
    client: TestClient, bundle: Bundle, runtime: Runtime, target: str
) -> None:
    # The oracle runs one pass per token with the runtime alone.
    tokenizer = Tokenizer.from_bundle(bundle)
    text = "Plants turn sunlight into sugar by [MASK]."
    parameters = {"targets": [target, "magic", "photobiosis"]}
    fills = client.post("/fill-mask", json={"inputs": text, "parameters": parameters}).json()
    [fill] = [fill for fill in fills if fill["token_str"] == target]
    encoded = tokenizer.encode(text)
    [position] = encoded.mask_positions.tolist()
    tokens = list(tokenizer.encode_target(target))
    total = 0.0
    for place, token in enumerate(tokens):
        masks = [bundle.mask_token_id] * (len(tokens) - place)
        ids = encoded.input_ids.tolist()
        ids[position : position + 1] = [*tokens[:place], *masks]
        request = ModelPass(np.array(ids), np.array([position + place]), 1, np.array([[token]]))
        total += float(runtime.run(Batch.pack([request])).target_log_probs[0, 0])
    assert len(tokens) > 1
    assert fill["tokens"] == tokens
    assert abs(fill["log_prob"] - total) < 1e-4


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

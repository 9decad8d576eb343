"""Agreement of int8 with fp32, compared with a loop over the masks in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from fillmask.bundles.bundle import read_bundle
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.heads.agreement import MASK_EVERY, Fp32Predictions
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.samples import Samples
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.samples import VERSES


@pytest.fixture
def runtime(checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path) -> Runtime:
    """Runtime of the checkpoint's fp32 graph, which tests compare with a changed encoder."""
    label = BundleMetadata(name="x", license="", description="", max_tokens=None, precision="fp32")
    write_bundle(checkpoint, tmp_path / "bundle", label, texts)
    return Runtime(tmp_path / "bundle" / "model.onnx")


@pytest.fixture
def tokenizer(runtime: Runtime, tmp_path: Path) -> Tokenizer:
    return Tokenizer.from_bundle(read_bundle(tmp_path / "bundle"))


def predictions(
    model: TiedEncoder, texts: Sequence[str], tokenizer: Tokenizer, tokens: int
) -> Fp32Predictions:
    samples = Samples(
        texts=texts,
        tokenizer=tokenizer,
        max_tokens=tokens,
        token_types=1,
        int8=True,
        vocab_size=model.config.vocab_size,
    )
    return Fp32Predictions.from_samples(model, samples)


def shaken(model: TiedEncoder) -> TiedEncoder:
    """Return a copy of the encoder with a small random change of every weight."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.03 * torch.randn(parameter.shape, generator=generator))
    return other


def test_the_same_encoder_agrees(
    runtime: Runtime, checkpoint: Checkpoint, tokenizer: Tokenizer
) -> None:
    # Every token except special tokens is a mask once, in several batches.
    figures = predictions(checkpoint.model, VERSES * 12, tokenizer, 24).measure(runtime)
    assert (
        figures["masks"] == sum(len(tokenizer.encode(verse).input_ids) - 2 for verse in VERSES) * 12
    )
    assert figures["top_1_agreement"] == 1
    assert figures["p99_log_prob_difference"] < 1e-4


def test_few_of_many_tokens_are_masked(
    checkpoint: Checkpoint, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each text gets masks before any text gets others, and the masks are far from each other.
    monkeypatch.setattr("fillmask_export.heads.agreement.MAX_MASKS", len(VERSES))
    requests = predictions(checkpoint.model, VERSES, tokenizer, 24).requests
    masks = [request.mask_positions for request in requests]
    assert len(VERSES) <= sum(map(len, masks)) < len(VERSES) + 24 // MASK_EVERY
    assert len(requests) <= len(VERSES)
    assert all(positions[0] == 1 for positions in masks)
    assert all((np.diff(positions) == MASK_EVERY).all() for positions in masks)


@torch.inference_mode()
def test_figures_are_what_they_say(
    runtime: Runtime, checkpoint: Checkpoint, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The expected figures come from PyTorch in a loop over the masks.
    monkeypatch.setattr("fillmask_export.heads.agreement.REQUESTS_AT_ONCE", 5)
    monkeypatch.setattr("fillmask_export.heads.agreement.MIN_AGREEMENT", 0)
    monkeypatch.setattr("fillmask_export.heads.agreement.MAX_P99", 100)
    exact, served = shaken(checkpoint.model), checkpoint.model
    same, differences = [], []
    for verse in VERSES:
        ids = tokenizer.encode(verse).input_ids
        for first in range(1, min(MASK_EVERY, len(ids) - 2) + 1):
            places = range(first, len(ids) - 1, MASK_EVERY)
            masked = torch.from_numpy(ids.copy())
            masked[list(places)] = tokenizer.mask_token_id
            indicator = torch.tensor([float(place in places) for place in range(len(ids))])
            all_expected, all_found = (
                model(masked[None], indicator[None]).log_softmax(-1) for model in (exact, served)
            )
            for expected, found in zip(all_expected, all_found, strict=True):
                best = expected.topk(5).indices
                same.append(bool(found.argmax() == best[0]))
                differences.append((found - expected)[best].abs().numpy())
    figures = predictions(exact, VERSES, tokenizer, 24).measure(runtime)
    assert 0.2 < figures["top_1_agreement"] < 1  # precondition of the test
    assert figures["masks"] == len(same)
    assert figures["top_1_agreement"] == pytest.approx(np.mean(same))
    assert figures["mean_log_prob_difference"] == pytest.approx(np.mean(differences), abs=1e-5)
    assert figures["p99_log_prob_difference"] == pytest.approx(
        np.quantile(differences, 0.99), abs=1e-4
    )


def test_texts_that_are_too_long_are_passed_over(
    runtime: Runtime, checkpoint: Checkpoint, tokenizer: Tokenizer
) -> None:
    shortest = min(VERSES, key=lambda verse: len(tokenizer.encode(verse).input_ids))
    length = len(tokenizer.encode(shortest).input_ids)
    two = [shortest, " ".join(VERSES)]
    figures = predictions(checkpoint.model, two, tokenizer, length).measure(runtime)
    assert figures["masks"] == length - 2
    with pytest.raises(VerificationError, match="have more than"):
        predictions(checkpoint.model, [shortest], tokenizer, length - 1)

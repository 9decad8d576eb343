"""Held-out figures against sums made in float64 NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.encoder import TiedEncoder
from model.evaluate import EVALUATION_SEED, evaluate
from model.masking import Masker
from tests.model import oracle
from tests.model.samples import random_encoder, random_ids, small_config

MASKER = Masker(61, 4, (0, 1, 2, 3, 4))


@pytest.fixture
def rows() -> NDArray[np.int32]:
    """(37, 16) tokens: one full batch and a shorter one."""
    return random_ids((37, 16), 61).int().numpy()


@pytest.fixture
def model() -> TiedEncoder:
    """A random encoder, so that figures are neither 0 nor 1."""
    return random_encoder(small_config())


def expected(model: TiedEncoder, rows: NDArray[np.int32]) -> dict[str, float]:
    """The figures, position by position."""
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    losses, ranks = [], []
    for start in range(0, len(rows), 32):
        corrupted = MASKER(torch.from_numpy(rows[start : start + 32]).long(), generator)
        with torch.inference_mode():
            logits_MV = model(corrupted.input_ids, corrupted.selected).double().numpy()
        for logits, label in zip(logits_MV, corrupted.labels.tolist(), strict=True):
            losses.append(-oracle.log_softmax(logits)[label])
            ranks.append(int((logits > logits[label]).sum()))
    loss = math.fsum(losses) / len(losses)
    return {
        "loss": loss,
        "perplexity": math.exp(loss),
        "top_1": sum(rank == 0 for rank in ranks) / len(ranks),
        "top_5": sum(rank < 5 for rank in ranks) / len(ranks),
        "predicted_tokens": len(ranks),
    }


def test_figures_are_the_oracles(model: TiedEncoder, rows: NDArray[np.int32]) -> None:
    """Loss and perplexity to 1e-5 of themselves, shares and the count exactly."""
    with torch.no_grad():  # biased towards a few tokens, so that some predictions are right
        model.head_bias.add_(8 * torch.linspace(0, 1, 61) ** 8)
    figures, reference = evaluate(model, rows, MASKER).to_dict(), expected(model, rows)
    assert 0 < reference["top_1"] < reference["top_5"] < 1
    assert figures == pytest.approx(reference, rel=1e-5)
    assert figures["top_1"] == reference["top_1"]
    assert figures["top_5"] == reference["top_5"]


def test_an_encoder_that_knows_nothing_scores_the_vocabulary(rows: NDArray[np.int32]) -> None:
    """Equal logits everywhere give a perplexity of V."""
    model = TiedEncoder(small_config(head_transform=False, head_bias=False))
    with torch.no_grad():
        model.embeddings.word.weight.zero_()
    figures = evaluate(model, rows, MASKER)
    assert figures.loss == pytest.approx(math.log(61), rel=1e-6)
    assert figures.perplexity == pytest.approx(61, rel=1e-5)


def test_the_same_model_gets_the_same_figures(model: TiedEncoder, rows: NDArray[np.int32]) -> None:
    """The positions to predict are fixed; torch's own state has no say and is left alone."""
    torch.manual_seed(1)
    first = evaluate(model, rows, MASKER)
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), after)
    assert evaluate(model, rows, MASKER) == first


@pytest.mark.parametrize("training", [True, False])
def test_the_training_mode_is_restored(
    model: TiedEncoder,
    rows: NDArray[np.int32],
    training: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """Evaluation leaves the encoder in the mode it found it in, with no gradient."""
    model.train(training)
    evaluate(model, rows, MASKER)
    assert model.training == training
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("rows", [np.empty((0, 16), np.int32), np.full((4, 16), 2, np.int32)])
def test_nothing_to_predict_is_an_error(model: TiedEncoder, rows: NDArray[np.int32]) -> None:
    """No row, or special tokens only, is a ValueError and no division by zero."""
    with pytest.raises(ValueError, match="nothing to evaluate"):
        evaluate(model, rows, MASKER)

"""Held-out figures, compared with sums in float64 NumPy."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fillmask_model.bootstrap import EVALUATION_SEED
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining.evaluation import RowScores, evaluate
from fillmask_model.pretraining.masking import Masker
from tests.model import oracle
from tests.model.samples import random_encoder, random_ids, small_config

MASKER = Masker(61, 4, (0, 1, 2, 3, 4))


@pytest.fixture
def rows() -> NDArray[np.int32]:
    """Token ids (37, 16), in one full batch of 32 rows and a shorter batch."""
    return random_ids((37, 16), 61).int().numpy()


@pytest.fixture
def model() -> TiedEncoder:
    """A random encoder, whose shares of right predictions are neither 0 nor 1."""
    return random_encoder(small_config())


def expected(model: TiedEncoder, groups: list[NDArray[np.int32]]) -> dict[str, float]:
    """Compute the figures position by position."""
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    losses, ranks = [], []
    for rows in (group[start : start + 32] for group in groups for start in (0, 32)):
        corrupted = MASKER(torch.from_numpy(rows).long(), generator)
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
    # Loss and perplexity agree to 1e-5. Shares of right predictions and the count are exact.
    groups = [rows[:, :7], rows]
    with torch.no_grad():  # biased towards a few tokens, so that some predictions are right
        model.head_bias.add_(8 * torch.linspace(0, 1, 61) ** 8)
    figures = evaluate(model, groups, MASKER).metrics()
    reference = expected(model, groups)
    assert 0 < reference["top_1"] < reference["top_5"] < 1
    assert asdict(figures) == pytest.approx(reference, rel=1e-5)
    assert (figures.top_1, figures.top_5) == (reference["top_1"], reference["top_5"])


@pytest.mark.parametrize("training", [True, False])
def test_an_evaluation_leaves_no_trace(
    model: TiedEncoder,
    rows: NDArray[np.int32],
    training: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    # The positions to predict are always the same, whatever the state of torch.
    model.train(training)
    state = torch.get_rng_state()
    first = evaluate(model, [rows], MASKER).metrics()
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert evaluate(model, [rows], MASKER).metrics() == first
    assert model.training == training
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("rows", [np.empty((0, 16), np.int32), np.full((4, 16), 2, np.int32)])
def test_nothing_to_predict_is_an_error(model: TiedEncoder, rows: NDArray[np.int32]) -> None:
    with pytest.raises(ValueError, match="held-out text is too short"):
        evaluate(model, [rows], MASKER)


def scores_of(first: NDArray[np.int64], predicted: int) -> RowScores:
    """Return scores with a loss of 2.5 nats per position and equal top-1 and top-5 counts."""
    columns = [np.full(len(first), 2.5 * predicted), first, first, np.full(len(first), predicted)]
    return RowScores(np.stack(columns, axis=1).astype(np.float64))


@pytest.mark.parametrize("together", [1, 20])
def test_intervals_are_as_wide_as_sampling_theory_says(together: int) -> None:
    # Half an interval is 1.96 standard errors, to 10 %. The positions of a row may go together.
    drawn = np.random.default_rng(0).binomial(20 // together, 0.3, size=2000)
    intervals = scores_of(together * drawn, 20).intervals()
    low, high = intervals["top_1"]
    half_width = 1.96 * math.sqrt(0.3 * 0.7 / (40_000 / together))
    assert (high - low) / 2 == pytest.approx(half_width, rel=0.1)
    assert low < 0.3 < high
    # what doesn't vary is a point
    assert intervals["loss"] == (2.5, 2.5)
    assert intervals["perplexity"] == (math.exp(2.5), math.exp(2.5))


def test_intervals_hold_where_samples_may_be_empty() -> None:
    intervals = RowScores(np.array([[5.0, 1, 1, 2], [0, 0, 0, 0]])).intervals()
    assert intervals["top_1"] == (0.5, 0.5)
    assert intervals["loss"] == (2.5, 2.5)

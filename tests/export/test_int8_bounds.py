"""Bounds on the differences between int8 and fp32, with results made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import ArrayLike

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_export.heads.agreement import Fp32Predictions
from fillmask_export.heads.classify import ExpectedLabels
from fillmask_export.heads.classify_tokens import ExpectedTokens
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.sparse import ExpectedVectors

IDS = np.array([2, 7, 3])


def returning(**outputs: ArrayLike) -> Runtime:
    """Return a runtime that has the same results for every batch."""
    arrays = {name: np.array(values) for name, values in outputs.items()}

    def run(_: Batch) -> SimpleNamespace:
        return SimpleNamespace(**arrays)

    return cast("Runtime", SimpleNamespace(run=run))


def test_fills_without_numbers_are_refused() -> None:
    # A comparison with NaN is false, whatever the bound is.
    request = ModelPass(IDS, np.array([1]), 5, np.array([[4, 5, 6, 7, 8]]))
    expected = Fp32Predictions((request,), np.full((1, 5), -2, np.float32))
    runtime = returning(top_ids=[[4]], target_log_probs=[[-2, -2, np.nan, -2, -2]])
    with pytest.raises(VerificationError, match=r"must differ from fp32's by .* \(got nan\)"):
        expected.measure(runtime)


@pytest.mark.parametrize(
    ("exact", "found", "refused"),
    [
        ([0.1, -0.1], [0.5, 0.2], False),  # 0.5 for small logits
        ([0.1, -0.1], [0.7, 0.2], True),
        ([10, -10], [11.5, -9], False),  # a fifth of large ones
        ([10, -10], [12.5, -9], True),
    ],
)
def test_the_bound_on_labels_grows_with_the_logits(
    exact: list[float], found: list[float], *, refused: bool
) -> None:
    request = ModelPass.for_head(IDS, None, "first")
    expected = ExpectedLabels([request], 1, np.array([exact], np.float32))
    runtime = returning(pooled=[found])
    if refused:
        with pytest.raises(VerificationError, match="logits of int8 must differ from fp32's by at"):
            expected.measure(runtime)
    else:
        assert expected.measure(runtime)["best_label_agreement"] == 1


def test_labels_that_tie_may_swap() -> None:
    # The share of texts with the same best label still counts them.
    request = ModelPass.for_head(IDS, None, "first")
    expected = ExpectedLabels([request], 1, np.array([[0.1, 0.05]], np.float32))
    assert expected.measure(returning(pooled=[[0.05, 0.1]]))["best_label_agreement"] == 0


def test_a_dimension_of_weight_zero_is_not_strong() -> None:
    # The vector has fewer than a hundred dimensions, of which int8 has another one.
    request = ModelPass.for_head(IDS, None, "mean")
    expected = ExpectedVectors([request], 1, np.array([[0, 0, 3, 0.1, 0]], np.float32))
    runtime = returning(pooled=[[0, 0, 3, 0, 0.1]])
    with pytest.raises(VerificationError, match=r"strongest dimensions \(got 50\.0 %\)"):
        expected.measure(runtime)


@pytest.mark.parametrize(
    ("wrong", "logit", "message"),
    [
        (1, 5.0, ""),
        (3, 5.0, r"fp32's label at 98 % of tokens or more \(got 97\.0 %\)"),
        (0, 0.3, r"differ from fp32's by at most 0\.5 nats at the 99th percentile"),
        (0, np.nan, r"differ from fp32's by at most 0\.5 nats at the 99th percentile"),
    ],
)
def test_the_gate_of_labels_of_tokens(wrong: int, logit: float, message: str) -> None:
    # Of a hundred tokens, a few have another label, or all are less certain.
    tokens = 100
    exact = np.zeros((tokens, 2), np.float32)
    exact[:, 1] = 5.0
    found = np.where(exact > 0, np.float32(logit), exact)
    found[10 : 10 + wrong] = found[10 : 10 + wrong, ::-1]
    request = ModelPass.for_head(np.arange(tokens), None, "tokens")
    expected = ExpectedTokens([request], 1, exact, ("O", "B-X"))
    if message:
        with pytest.raises(VerificationError, match=message):
            expected.measure(returning(tokens=found))
        return
    figures = expected.measure(returning(tokens=found))
    assert figures["label_agreement"] == 0.99
    # each token between the special ones begins an entity, of which int8 lost one
    assert (figures["entities"], figures["entity_agreement"]) == (98, 97 / 98)

"""Training of tiny sparse encoders, and its loss in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fillmask_model.sparse.config import SparseConfig
from fillmask_model.sparse.training import Epoch, contrastive_loss, flops, lower_bias
from tests.model.sparse.samples import tiny_run


@pytest.mark.slow  # 160 steps
def test_a_tiny_encoder_learns_to_translate() -> None:
    epochs: list[Epoch] = []
    assert tiny_run().run(epochs.append)
    first, last = epochs[0].metrics, epochs[-1].metrics
    assert [epoch.epoch for epoch in epochs] == list(range(1, 21))
    assert epochs[-1].steps == 20 * 8  # 256 pairs in batches of 32
    assert first.mrr_at_10 < 0.3
    assert last.mrr_at_10 > 0.8
    assert last.document_words < 30  # of 35


def test_the_penalty_removes_words() -> None:
    words = []
    for penalty in (0.0, 0.1):
        epochs: list[Epoch] = []
        tiny_run(document_penalty=penalty, query_penalty=penalty, epochs=3).run(epochs.append)
        words.append(epochs[-1].metrics.document_words)
        if not penalty:
            assert epochs[-1].metrics.mrr_at_10 > 1.5 * epochs[0].metrics.mrr_at_10
    assert words[1] < 0.7 * words[0]


def test_the_bias_falls_once() -> None:
    run = tiny_run()
    lowered = run.model.get_parameter("head_bias").detach().clone()
    lower_bias(run.model, run.training.documents)
    torch.testing.assert_close(run.model.get_parameter("head_bias").detach(), lowered)
    with torch.no_grad():  # as in an encoder that is sparse already
        run.model.get_parameter("head_bias").sub_(1)
    lower_bias(run.model, run.training.documents)
    torch.testing.assert_close(run.model.get_parameter("head_bias").detach(), lowered - 1)


def test_a_run_stops_between_two_steps() -> None:
    epochs: list[Epoch] = []
    calls = iter(range(100))
    assert not tiny_run().run(epochs.append, lambda: next(calls) == 10)
    assert [epoch.epoch for epoch in epochs] == [1]


def test_a_file_must_fill_a_batch() -> None:
    with pytest.raises(ValueError, match=r"at least 300 pairs, one batch \(got 256\)"):
        tiny_run(batch_rows=300)


def test_the_loss_is_the_cross_entropy_of_the_own_document() -> None:
    generator = np.random.default_rng(0)
    queries, documents = generator.random((2, 4, 7))
    equal = np.eye(4, dtype=bool)
    equal[0, 2] = equal[2, 0] = True
    expected = 0.0
    for row in range(4):
        scores = documents @ queries[row]
        others = [math.exp(scores[c]) for c in range(4) if c == row or not equal[row, c]]
        expected += (math.log(sum(others)) - scores[row]) / 4
    found = contrastive_loss(*map(torch.from_numpy, (queries, documents, equal)))
    assert float(found) == pytest.approx(expected, rel=1e-9)
    assert float(flops(torch.from_numpy(queries))) == pytest.approx(
        sum(queries[:, word].mean() ** 2 for word in range(7)), rel=1e-9
    )


def test_penalties_rise_with_the_square_of_the_step() -> None:
    config = SparseConfig(penalty_share=0.5)
    assert [config.penalty_at(step, 8) for step in range(1, 9)] == pytest.approx(
        [1 / 16, 4 / 16, 9 / 16, 1, 1, 1, 1, 1]
    )
    assert SparseConfig(penalty_share=0.0).penalty_at(1, 8) == 1
    with pytest.raises(ValueError, match=r"penalty_share must be below 1 \(got 1.0\)"):
        SparseConfig(penalty_share=1.0)

"""Imitated runs and extrapolated latencies."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.load.many_cpus import amdahl, imitated_outputs, line_through
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets


def test_a_line_through_durations() -> None:
    intercept, slope = line_through([(10, 3.0), (20, 5.0), (30, 7.0)])
    assert intercept == pytest.approx(1)
    assert slope == pytest.approx(0.2)


def test_measured_durations_are_points_of_the_extrapolation() -> None:
    assert amdahl(10, 6, 1) == 10
    assert amdahl(10, 6, 2) == 6
    assert amdahl(10, 6, 8) == 2 + 8 / 8
    # a machine with measurement noise can halve the duration and more
    assert amdahl(10, 4, 5) == 2


def test_imitated_outputs_have_the_shapes_of_real_outputs() -> None:
    passes = [
        ModelPass(np.arange(tokens), np.arange(masks), 3, no_targets(masks))
        for tokens, masks in ((5, 2), (7, 1))
    ]
    batch = Batch.pack(passes)
    first, second = batch.unpack(imitated_outputs(batch))
    assert first.top_ids.shape == first.top_log_probs.shape == (2, 3)
    assert second.top_ids.shape == (1, 3)
    assert second.target_log_probs.shape == (1, 0)
    assert np.exp(first.top_log_probs).sum(axis=1) == pytest.approx([1, 1])

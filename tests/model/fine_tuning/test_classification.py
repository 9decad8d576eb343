"""Fine-tuning of tiny encoders on tiny tasks with labels, and its losses by hand."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch

from fillmask_model.fine_tuning.classification import label_loss, new_classifier, predict
from fillmask_model.fine_tuning.config import ClassifyConfig
from fillmask_model.fine_tuning.loop import Epoch, fine_tune
from fillmask_model.fine_tuning.metrics import compute_metrics
from tests.model.fine_tuning.samples import (
    MULTI,
    SINGLE,
    TinyTask,
    dataset_of,
    only,
    tiny_encoder,
    topic_task,
)
from tests.model.samples import assert_same_weights


def test_a_tiny_encoder_learns_the_topic() -> None:
    task = topic_task(360)
    objective, epochs = task.train()
    assert [(epoch.epoch, epoch.steps) for epoch in epochs] == [(n, 12 * n) for n in range(1, 6)]
    metrics = epochs[-1].metrics
    assert (metrics["accuracy"], metrics["macro_f1"]) == (1.0, 1.0)
    assert metrics["loss"] < 0.1 < epochs[0].training_loss
    # the loss is the mean over the rows
    logits = predict(objective.model, task.validation.texts).astype(np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -log_probs[np.arange(len(logits)), task.validation.targets].mean()
    assert metrics["loss"] == pytest.approx(expected, rel=0.02)  # training may use bfloat16


def test_numbers_are_learned_in_their_own_unit() -> None:
    # The values are 1,000 to 1,300, a range that is slow to learn without scaled targets.
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 7, 180)
    rows = [(" ".join(["red"] * n + ["of"] * (7 - n)), 1000 + 50.0 * n) for n in counts]
    task = TinyTask(dataset_of(rows[:120]), dataset_of(rows[120:]), "regression")
    objective, epochs = task.train(epochs=6)
    variance = float(task.validation.targets.var())
    assert epochs[-1].metrics["mean_squared_error"] < 0.05 * variance
    assert epochs[-1].metrics["spearman"] > 0.95
    published = predict(objective.published_model(), task.validation.texts)
    found = compute_metrics("regression", published, task.validation.targets)
    assert found["mean_squared_error"] < 0.05 * variance


def test_a_seed_determines_the_run() -> None:
    task = topic_task(60)
    first, again, other = (task.train(epochs=1, seed=seed)[0].model for seed in (3, 3, 4))
    assert_same_weights(first, again)
    assert not torch.equal(first.embeddings.word.weight, other.embeddings.word.weight)


def test_a_classifier_gets_a_new_head() -> None:
    # The seed decides it, even for a start that has such a head.
    head = topic_task(6).head
    start = new_classifier(tiny_encoder(), head, 0, from_scratch=False)
    for seed in (0, 1):
        model = new_classifier(copy.deepcopy(start), head, seed, from_scratch=False)
        same = torch.equal(
            model.get_parameter("classifier.output.weight"),
            start.get_parameter("classifier.output.weight"),
        )
        assert same == (seed == 0)


def test_each_step_has_its_learning_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    step = torch.optim.AdamW.step

    def record(self: torch.optim.AdamW) -> None:
        rates.extend(group["lr"] for group in self.param_groups)
        step(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", record)
    topic_task(64).train(epochs=2)  # 2 steps per epoch
    config = ClassifyConfig(epochs=2, learning_rate=1e-2)
    assert rates == [config.learning_rate_at(n, 4) for n in (1, 2, 3, 4) for _ in range(2)]


def test_dropout_acts_in_training_only() -> None:
    task = topic_task(60)
    losses = [task.train(epochs=1, dropout=share)[1][0].training_loss for share in (0.0, 0.9)]
    assert losses[0] != losses[1]
    objective = task.objective(ClassifyConfig(dropout=0.9))
    first, again = (predict(objective.model, task.training.texts) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_stop_request_ends_the_run() -> None:
    epochs: list[Epoch] = []
    calls = iter(range(1000))
    config = ClassifyConfig()
    objective = topic_task(64).objective(config)  # 2 steps per epoch
    assert not fine_tune(objective, config, epochs.append, lambda: next(calls) == 2)
    assert [epoch.epoch for epoch in epochs] == [1]


def test_an_infinite_loss_ends_the_run() -> None:
    config = ClassifyConfig()
    objective = topic_task(60).objective(config)
    with torch.no_grad():
        objective.model.get_parameter("classifier.output.bias").fill_(float("inf"))
    with pytest.raises(FloatingPointError, match=r"finite \(got nan at step 1\).*learning_rate"):
        fine_tune(objective, config, lambda _: None)


def test_predictions_keep_the_order_of_the_rows() -> None:
    # A prediction does not depend on the other rows of its batch.
    task = topic_task(200)
    model = new_classifier(tiny_encoder(), task.head, 0, from_scratch=True)
    together = predict(model, task.validation.texts)
    for row in (0, 67, 99):
        alone = predict(model, only(task.validation.texts, row))
        np.testing.assert_allclose(alone[0], together[row], atol=1e-5)


LN_2 = math.log(2)
LOW = math.log1p(math.e**-2)  # loss of a label whose logit is 2 above the other's, or above 0


@pytest.mark.parametrize(
    ("problem_type", "logits", "targets", "expected"),
    [
        (SINGLE, [[2.0, 0.0], [0.0, 2.0]], [0, 0], (LOW + LOW + 2) / 2),
        (MULTI, [[2.0, -2.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]], (LOW * 3 + 2 + LN_2) / 4),
        ("regression", [[1.0], [4.0]], [3.0, 4.0], 2.0),
    ],
)
def test_losses_by_hand(problem_type: Any, logits: Any, targets: Any, expected: float) -> None:
    loss = label_loss(problem_type, torch.tensor(logits), torch.tensor(targets))
    assert float(loss) == pytest.approx(expected)

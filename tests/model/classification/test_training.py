"""Fine-tuning of tiny encoders on tiny tasks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fillmask_model.classification.metrics import compute_metrics
from fillmask_model.classification.prediction import LabelledTexts, predict
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.classification.samples import (
    LABELS,
    MULTI,
    SINGLE,
    TinyTask,
    dataset_of,
    topic_task,
    topic_text,
)
from tests.model.samples import assert_same_weights


def test_a_tiny_encoder_learns_the_topic() -> None:
    epochs = topic_task().train()
    assert epochs[-1].metrics == {"accuracy": 1.0, "macro_f1": 1.0}
    assert epochs[-1].validation_loss < 0.1 < epochs[0].training_loss
    assert [epoch.epoch for epoch in epochs] == [1, 2, 3, 4, 5]
    assert epochs[-1].steps == 5 * 12  # 180 rows in batches of 16


def test_labels_in_random_order_cannot_be_predicted() -> None:
    accuracy = topic_task(shuffle=True).train()[-1].metrics["accuracy"]
    # one in three of 180 rows, 4 standard deviations
    assert abs(accuracy - 1 / 3) < 4 * np.sqrt(1 / 3 * 2 / 3 / 180)


def test_several_labels_are_learned() -> None:
    generator = np.random.default_rng(0)
    chosen = [tuple(label for label in LABELS if generator.random() < 0.5) for _ in range(360)]
    rows = [(topic_text(generator, *topics), topics) for topics in chosen]
    task = TinyTask(dataset_of(rows[:240]), dataset_of(rows[240:]), MULTI)
    metrics = task.train(epochs=10)[-1].metrics
    assert min(metrics.values()) > 0.97


def test_numbers_are_learned_in_their_own_unit() -> None:
    # The values are 1,000 to 1,300, a range that is slow to learn without scaled targets.
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 7, 360)
    rows = [(" ".join(["red"] * n + ["of"] * (7 - n)), 1000 + 50.0 * n) for n in counts]
    task = TinyTask(dataset_of(rows[:240]), dataset_of(rows[240:]), "regression")
    run = task.run(epochs=10)
    errors = []
    assert run.run(lambda epoch: errors.append(epoch.metrics))
    variance = float(task.validation.targets.var())
    assert errors[-1]["mean_squared_error"] < 0.02 * variance
    assert errors[-1]["spearman"] > 0.97
    published = predict(run.published_model(), task.validation.texts)
    found = compute_metrics("regression", published, task.validation.targets)
    assert found["mean_squared_error"] < 0.02 * variance


def test_the_validation_loss_is_the_mean_over_rows_in_the_unit_of_training() -> None:
    task = topic_task()
    run = task.run(epochs=1)
    losses = []
    run.run(lambda epoch: losses.append(epoch.validation_loss))
    logits = predict(run.model, task.validation.texts).astype(np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -log_probs[np.arange(len(logits)), task.validation.targets].mean()
    assert losses[0] == pytest.approx(expected, rel=0.01)  # training may use bfloat16


def trained(task: TinyTask, seed: int) -> TiedEncoder:
    """Return the encoder after one epoch."""
    run = task.run(epochs=1, seed=seed)
    run.run(lambda _: None)
    return run.model


def test_a_seed_determines_the_run() -> None:
    task = topic_task()
    first = trained(task, 3)
    torch.manual_seed(99)
    assert_same_weights(first, trained(task, 3))
    other = trained(task, 4)
    assert not torch.equal(first.embeddings.word.weight, other.embeddings.word.weight)


def test_class_weights_favour_rare_labels() -> None:
    # All texts are equal, so only the bias of the head determines the prediction.
    rows = dataset_of([("the of and", "rare" if i % 5 == 0 else "usual") for i in range(60)])
    task = TinyTask(rows, rows)
    probabilities = []
    for weights in (None, np.array([2.5, 0.625], np.float32)):
        run = task.run(epochs=20, batch_rows=60, class_weights=weights)
        run.run(lambda _: None)
        logits = predict(run.model, task.validation.texts)[0].astype(np.float64)
        probabilities.append(np.exp(logits[0]) / np.exp(logits).sum())
    assert probabilities == pytest.approx([0.2, 0.5], abs=0.03)


def test_dropout_acts_in_training_only() -> None:
    task = topic_task()
    losses = [task.train(epochs=1, dropout=share)[0].training_loss for share in (0.0, 0.5)]
    assert losses[0] != losses[1]
    run = task.run(epochs=1, dropout=0.9)
    run.run(lambda _: None)
    first, second = (predict(run.model, task.validation.texts) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_stop_request_ends_the_run() -> None:
    epochs: list[int] = []
    calls = iter(range(1000))
    run = topic_task().run()
    assert not run.run(lambda epoch: epochs.append(epoch.epoch), lambda: next(calls) == 15)
    assert epochs == [1]  # 12 steps per epoch


def test_an_infinite_loss_ends_the_run() -> None:
    run = topic_task().run()
    with torch.no_grad():
        run.model.get_parameter("classifier.output.bias").fill_(float("inf"))
    with pytest.raises(FloatingPointError, match=r"finite \(got nan at step 1\).*learning_rate"):
        run.run(lambda _: None)


def test_an_encoder_without_a_classification_head_is_rejected() -> None:
    task = topic_task()
    run = task.run()
    with pytest.raises(ValueError, match="must have a classification head"):
        type(run)(
            model=TiedEncoder(task.start.config),
            training=task.training,
            validation=task.validation,
            config=run.config,
        )


def test_predictions_keep_the_order_of_the_rows() -> None:
    # A prediction does not depend on the other rows of its batch.
    task = topic_task()
    model = task.start.build(task.classifier, 0)
    together = predict(model, task.validation.texts)
    for row in (0, 77, 179):
        alone: LabelledTexts = task.validation.select(np.array([row]))
        np.testing.assert_allclose(predict(model, alone.texts)[0], together[row], atol=1e-5)
    assert compute_metrics(SINGLE, together, task.validation.targets)["accuracy"] < 1

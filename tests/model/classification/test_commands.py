"""Files, output and errors of `fillmask-train classify`."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.classification import best_checkpoint
from fillmask_model.classification.prediction import predict
from fillmask_model.classification.training import FineTuning
from fillmask_model.commands import main
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.fine_tuning.tokens import tokenize
from fillmask_model.tokenizers.special_tokens import read_tokenizer
from tests.model.classification.samples import (
    LABELS,
    TINY,
    read_text_rows,
    topic_rows,
    topic_text,
    write_rows,
)

pytestmark = pytest.mark.slow

FILES = {"config.json", "model.safetensors", "tokenizer.json", "metrics.json", "history.jsonl"}
PLOTS = {"curve.png", "confusion.png"}
PNG = b"\x89PNG"


@pytest.fixture(autouse=True)
def _in_new_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows("data.csv", topic_rows(150))
    write_rows("test.csv", topic_rows(60, seed=1))
    Path("tiny.json").write_text(json.dumps(TINY))


@pytest.fixture
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the drawing of plots, which takes most of a tiny run's time."""
    for name in ("draw_curve", "draw_confusion"):
        monkeypatch.setattr(best_checkpoint, name, lambda *_: None)


SCRATCH = ("--from-scratch", "--config=tiny.json")


def classify(*arguments: str, data: str = "data.csv", start: tuple[str, ...] = SCRATCH) -> int:
    """Run `fillmask-train classify` with a tiny encoder and a high learning rate."""
    quick = ("--learning-rate=0.01", "--epochs=4", "--device=cpu", "--output=run")
    return main(["classify", data, *start, *quick, *arguments])


def metrics() -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(Path("run/metrics.json").read_text())
    return fields


def test_a_run_writes_a_checkpoint_metrics_and_plots(capsys: pytest.CaptureFixture[str]) -> None:
    assert classify("--test=test.csv") == 0
    assert {path.name for path in Path("run").iterdir()} == FILES | PLOTS
    for name in PLOTS:
        assert Path("run", name).read_bytes().startswith(PNG)
    history = [json.loads(line) for line in Path("run/history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in history] == [1, 2, 3, 4]
    assert history[-1]["validation_accuracy"] == 1.0
    found = metrics()
    assert found["best_epoch"] in {2, 3, 4}
    assert found["validation"]["rows"] == 15
    assert found["training_rows"] == 135
    assert found["test"]["rows"] == 60
    assert found["test"]["accuracy"] == 1.0
    assert found["test"]["intervals"]["accuracy"] == [1.0, 1.0]
    assert found["test"]["confusion_matrix"] == [[20, 0, 0], [0, 20, 0], [0, 0, 20]]
    said = capsys.readouterr()
    assert "steps/s" in said.err
    assert "epoch 4: training loss" in said.out
    assert "test, 60 rows: accuracy 1.0000 (95 % confidence interval 1.0000 to 1.0000)" in said.out


@pytest.mark.usefixtures("_no_plots")
def test_the_checkpoint_classifies_and_has_no_other_head() -> None:
    assert classify() == 0
    checkpoint = load_checkpoint(Path("run"))
    assert checkpoint.tasks == ("text-classification",)
    assert checkpoint.model.classifier is not None
    assert checkpoint.model.classifier.config == ClassifierConfig(
        labels=LABELS, pooling="mean", activation=None
    )
    assert checkpoint.tokenizer_json is not None
    ids = read_tokenizer(checkpoint.tokenizer_json).encode("the red green pink").ids
    with torch.inference_mode():
        logits = checkpoint.model.classify(torch.tensor([ids]))
    assert LABELS[int(logits.argmax())] == "colour"


@pytest.mark.usefixtures("_no_plots")
def test_a_checkpoint_starts_and_sizes_an_encoder() -> None:
    assert classify() == 0
    Path("run").rename("first")
    first = load_checkpoint(Path("first"))
    assert classify("--learning-rate=1e-9", start=("--init=first",)) == 0
    again = load_checkpoint(Path("run"))
    for name, tensor in first.model.state_dict().items():
        if not name.startswith(("classifier.", "head")):
            torch.testing.assert_close(again.model.state_dict()[name], tensor, rtol=0, atol=1e-4)
    # the seed determines the random weights
    assert classify(start=("--from-scratch", "--like=first")) == 0
    like = load_checkpoint(Path("run"))
    assert like.tokenizer_json == first.tokenizer_json
    assert torch.equal(like.model.embeddings.word.weight, first.model.embeddings.word.weight)
    assert classify("--seed=1", start=("--from-scratch", "--like=first")) == 0
    other = load_checkpoint(Path("run")).model
    assert other.config == first.model.config
    assert not torch.equal(other.embeddings.word.weight, first.model.embeddings.word.weight)


@pytest.mark.usefixtures("_no_plots")
def test_the_best_epoch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # Later epochs with a worse metric do not replace the checkpoint.
    scores = iter([(0.5, 1.0), (0.8, 0.9), (0.8, 0.7), (0.7, 0.1)])
    validate = FineTuning._validate
    saved: list[Any] = []

    def scored(self: FineTuning, *arguments: Any) -> Any:
        accuracy, loss = next(scores)
        epoch = validate(self, *arguments)
        changed = {"accuracy": accuracy, "macro_f1": 1 - accuracy}
        return replace(epoch, validation_loss=loss, metrics=changed)

    def save(*arguments: Any, **options: Any) -> None:
        saved.append(arguments)
        save_checkpoint(*arguments, **options)

    monkeypatch.setattr(FineTuning, "_validate", scored)
    monkeypatch.setattr(best_checkpoint, "save_checkpoint", save)
    assert classify() == 0
    assert (metrics()["best_epoch"], metrics()["best_by"]) == (3, "accuracy")
    assert len(saved) == 3
    scores = iter([(0.5, 1.0), (0.8, 0.9), (0.8, 0.7), (0.7, 0.1)])
    assert classify("--best-by=macro_f1") == 0
    assert (metrics()["best_epoch"], metrics()["best_by"]) == (1, "macro_f1")


def test_several_labels_per_text() -> None:
    generator = np.random.default_rng(0)
    rows = [
        {"text": topic_text(generator, *topics), "label": "|".join(topics)}
        for topics in [LABELS[i % 3 : i % 3 + 2] for i in range(150)]
    ]
    write_rows("data.csv", rows)
    options = ("--problem-type=multi-label", "--class-weights=balanced", "--validation=data.csv")
    assert classify(*options, "--epochs=6") == 0
    found = metrics()
    assert found["problem_type"] == "multi_label_classification"
    assert found["best_by"] == "macro_f1"
    assert found["validation"]["micro_f1"] > 0.9
    assert "confusion_matrix" not in found["validation"]
    assert {path.name for path in Path("run").iterdir()} == FILES | {"curve.png"}


@pytest.mark.usefixtures("_no_plots")
def test_regression_reaches_the_unit_of_the_data() -> None:
    rows = [{"text": "red " * (i % 7) + "of", "score": 100 + 5 * (i % 7)} for i in range(150)]
    write_rows("data.jsonl", rows)
    options = ("--problem-type=regression", "--label-column=score", "--validation=data.jsonl")
    assert classify(*options, "--epochs=10", data="data.jsonl") == 0
    found = metrics()
    assert found["best_by"] == "mean_squared_error"
    assert found["validation"]["spearman"] > 0.9
    assert found["validation"]["mean_squared_error"] < 20  # the variance is 100
    checkpoint = load_checkpoint(Path("run"))
    assert checkpoint.model.classifier is not None
    assert checkpoint.model.classifier.config.labels == ("score",)
    assert checkpoint.tokenizer_json is not None
    texts = tokenize(
        read_text_rows(Path("data.jsonl"), "regression", label="score"),
        read_tokenizer(checkpoint.tokenizer_json),
        max_tokens=16,
        type_vocab_size=2,
        on_long_text="error",
    )
    assert 95 < float(predict(checkpoint.model, texts).mean()) < 135


@pytest.mark.usefixtures("_no_plots")
def test_pairs_of_texts_are_learned() -> None:
    # The second text alone determines the label.
    generator, rows = np.random.default_rng(0), []
    for i in range(300):
        text, text_pair = (topic_text(generator, LABELS[n % 3])[:12] for n in (i // 3, i))
        rows.append({"text": text, "text_pair": text_pair, "label": LABELS[i % 3]})
    write_rows("data.csv", rows)
    options = ("--validation=data.csv", "--epochs=12", "--on-long-text=truncate")
    assert classify(*options) == 0
    assert metrics()["validation"]["accuracy"] > 0.9


@pytest.mark.usefixtures("_no_plots")
def test_unusual_data_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row | {"id": i} for i, row in enumerate(topic_rows(60))]
    write_rows("data.csv", [*rows, rows[0], rows[1] | {"label": "food"}])
    write_rows("other.csv", rows[:2])
    assert classify("--validation=other.csv", "--test=other.csv") == 0
    said = capsys.readouterr().out
    assert "ignored columns of data.csv: id" in said
    assert "rows of data.csv that repeat the text of an earlier row: 2 (with another" in said
    assert said.count("rows of other.csv with a text that the training rows also have: 2") == 2


LONG = [{"text": "red " * 40, "label": "colour"}, *topic_rows(30)]


@pytest.mark.usefixtures("_no_plots")
def test_long_texts_can_be_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows("data.csv", LONG)
    assert classify("--on-long-text=truncate") == 0
    assert "rows of data.csv truncated to 16 tokens: 1 of 28" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"data.csv": LONG}, (), "row 1 must have at most 16 tokens (got 42; too many"),
        ({}, ("--max-tokens=7",), "--max-tokens must be from 8 to 16"),
        ({}, ("--max-tokens=17",), "from 8 to 16, the maximum of the encoder (got 17)"),
        ({}, ("--best-by=spearman",), "--best-by must be one of accuracy, macro_f1"),
        ({}, ("--text-column=body",), "has no column 'body'"),
        ({}, ("--validation-share=2",), "--validation-share must be above 0 and below 1"),
        ({}, ("--like=first", "--tokenizer=t.json"), "remove --config and --tokenizer"),
        ({}, ("--problem-type=regression",), "data.csv, row 1: label must be a number"),
        (
            {"other.csv": [{"text": "x", "label": "new"}]},
            ("--validation=other.csv",),
            "other.csv, row 1: the training rows have no label 'new'",
        ),
        (
            {"other.csv": [{"text": "x", "text_pair": "y", "label": "food"}]},
            ("--test=other.csv",),
            "other.csv has pairs and data.csv has single texts",
        ),
        (
            {"data.csv": [{"text": f"x {i}", "label": i} for i in range(9)]},
            ("--problem-type=regression", "--class-weights=balanced"),
            "--class-weights must be none for regression",
        ),
    ],
)
def test_a_mistake_is_one_message_without_a_checkpoint(
    files: dict[str, Any],
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, rows in files.items():
        write_rows(name, rows)
    assert classify(*arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("fillmask-train: ")
    assert message in said
    assert not Path("run/model.safetensors").exists()


def test_init_and_sizes_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert classify(start=("--init=x", "--config=tiny.json", "--tokenizer=t.json")) == 2
    assert "remove --config and --tokenizer" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        classify(start=())
    with pytest.raises(SystemExit, match="2"):
        classify(start=("--init=x", "--from-scratch"))


def send_sigterm_after(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the first step after this number of epochs send SIGTERM to this process."""
    step = FineTuning._training_loss

    def interrupted(self: FineTuning, batch: Any, number: int) -> Tensor:
        if number == 9 * epochs + 1:  # 135 rows in batches of 16
            assert threading.current_thread() is threading.main_thread()
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, batch, number)

    monkeypatch.setattr(FineTuning, "_training_loss", interrupted)


@pytest.mark.usefixtures("_no_plots")
def test_sigterm_keeps_the_best_checkpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    send_sigterm_after(2, monkeypatch)
    assert classify("--test=test.csv") == 0
    assert metrics()["epochs"] == 2
    assert metrics()["test"]["rows"] == 60
    assert load_checkpoint(Path("run")).tasks == ("text-classification",)
    assert "SIGTERM has stopped the run" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("_no_plots")
def test_sigterm_in_the_first_epoch_leaves_no_checkpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send_sigterm_after(0, monkeypatch)
    assert classify() == 2
    assert "it has completed no epoch" in capsys.readouterr().err
    assert not Path("run/config.json").exists()

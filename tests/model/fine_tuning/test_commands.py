"""Files, output and errors of `fillmask-train classify` and `fillmask-train sparse`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.sentence_transformers import read_modules, with_sparse_settings
from fillmask_model.commands import main
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.fine_tuning import commands, report
from fillmask_model.fine_tuning.classification import Classification
from tests.model.command_line import save_small
from tests.model.fine_tuning.samples import (
    LABELS,
    TOKENIZER,
    save_start,
    tiny_encoder,
    topic_rows,
    translations,
    write_rows,
)

CHECKPOINT = {"config.json", "model.safetensors", "tokenizer.json", "history.jsonl"}
FILES = CHECKPOINT | {"metrics.json", "curve.png"}


@pytest.fixture(autouse=True)
def _in_new_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows("data.csv", topic_rows(90))
    write_rows("test.csv", topic_rows(30, seed=1))
    write_rows("pairs.csv", translations(64))
    write_rows("validation.csv", translations(20, seed=1))
    save_start("start")


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the drawing of plots, which takes most of a tiny run's time."""
    monkeypatch.setattr(commands, "draw_curve", lambda *_: None)
    monkeypatch.setattr(report, "draw_confusion", lambda *_: None)


def classify(*arguments: str, data: str = "data.csv") -> int:
    quick = ("--init=start", "--learning-rate=0.02", "--epochs=1", "--device=cpu", "--output=run")
    return main(["classify", data, *quick, *arguments])


def sparse(*arguments: str) -> int:
    quick = ("--init=start", "--validation=validation.csv", "--epochs=1", "--device=cpu")
    return main(["sparse", "pairs.csv", *quick, "--output=run", *arguments])


def metrics() -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(Path("run/metrics.json").read_text())
    return fields


def history() -> list[dict[str, float]]:
    return [json.loads(line) for line in Path("run/history.jsonl").read_text().splitlines()]


def test_a_run_writes_a_checkpoint_metrics_and_plots(capsys: pytest.CaptureFixture[str]) -> None:
    assert classify("--test=test.csv", "--epochs=6") == 0
    assert {path.name for path in Path("run").iterdir()} == FILES | {"confusion.png"}
    for name in ("curve.png", "confusion.png"):
        assert Path("run", name).read_bytes().startswith(b"\x89PNG")
    assert [line["epoch"] for line in history()] == [1, 2, 3, 4, 5, 6]
    assert set(history()[0]) == {
        *("epoch", "steps", "training_loss"),
        *("validation_loss", "validation_accuracy", "validation_macro_f1"),
    }
    found = metrics()
    assert (found["epochs"], found["training_rows"], found["best_by"]) == (6, 81, "accuracy")
    assert found["validation"]["rows"] == 9
    assert "intervals" not in found["validation"]
    assert found["test"]["accuracy"] == 1.0
    assert found["test"]["intervals"]["accuracy"] == [1.0, 1.0]
    assert found["test"]["confusion_matrix"] == [[10, 0, 0], [0, 10, 0], [0, 0, 10]]
    said = capsys.readouterr()
    assert "steps/s" in said.err
    assert "epoch 6: training loss 0." in said.out
    assert ", validation loss 0." in said.out
    assert "test, 30 rows: accuracy 1.0000 (95 % confidence interval 1.0000 to 1.0000)" in said.out
    checkpoint = load_checkpoint(Path("run"))
    assert checkpoint.tasks == ("text-classification",)
    assert checkpoint.model.classifier is not None
    assert checkpoint.model.classifier.config == ClassifierConfig(
        labels=LABELS, pooling="mean", activation=None
    )
    ids = torch.tensor([TOKENIZER.encode("the red green pink").ids])
    with torch.inference_mode():
        assert LABELS[int(checkpoint.model.classify(ids).argmax())] == "colour"


@pytest.mark.usefixtures("no_plots")
def test_training_starts_from_the_checkpoint_or_from_scratch() -> None:
    tables = []
    for arguments in ((), ("--from-scratch",), ("--from-scratch", "--seed=1")):
        assert classify("--learning-rate=1e-9", *arguments) == 0
        tables.append(load_checkpoint(Path("run")).model.embeddings.word.weight)
    table = tiny_encoder().embeddings.word.weight
    torch.testing.assert_close(tables[0], table, rtol=0, atol=1e-5)
    assert not torch.allclose(tables[1], table, atol=1e-2)
    assert not torch.allclose(tables[1], tables[2], atol=1e-2)


@pytest.mark.usefixtures("no_plots")
def test_the_best_epoch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    losses, saved = iter([1.0, 0.5, 0.9]), []

    def evaluate(_: Classification) -> dict[str, float]:
        return {"loss": next(losses), "accuracy": 0.5, "macro_f1": 0.5}

    def save(*arguments: Any, **options: Any) -> None:
        saved.append(arguments)
        save_checkpoint(*arguments, **options)

    monkeypatch.setattr(Classification, "evaluate", evaluate)
    monkeypatch.setattr(commands, "save_checkpoint", save)
    assert classify("--epochs=3", "--best-by=macro_f1") == 0
    assert (metrics()["best_epoch"], metrics()["best_by"], len(saved)) == (2, "macro_f1", 2)


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize(
    ("problem_type", "rows", "options", "labels", "best_by"),
    [
        (
            "multi-label",
            [{"text": "red cat", "label": ["b", "a"]}, {"text": "red", "label": ["b"]}] * 9
            + [{"text": "cat", "label": []}],
            (),
            ("a", "b"),
            "macro_f1",
        ),
        (
            "regression",
            [{"text": "red " * n, "text_pair": "cat", "stars": 100 * n} for n in range(1, 10)] * 2,
            ("--label-column=stars",),
            ("stars",),
            "mean_squared_error",
        ),
    ],
)
def test_other_problem_types(
    problem_type: str, rows: Any, options: tuple[str, ...], labels: tuple[str, ...], best_by: str
) -> None:
    write_rows("data.jsonl", rows)
    arguments = (f"--problem-type={problem_type}", "--validation=data.jsonl", *options)
    assert classify(*arguments, data="data.jsonl") == 0
    assert metrics()["best_by"] == best_by
    assert metrics()["validation"]["rows"] == len(rows)
    model = load_checkpoint(Path("run")).model
    assert model.classifier is not None
    assert model.classifier.config.labels == labels
    if problem_type == "regression":  # the mean of the data, which an untrained head does not know
        ids = torch.tensor([TOKENIZER.encode("red red", "cat").ids])
        assert 200 < model.classify(ids).item() < 800


@pytest.mark.usefixtures("no_plots")
def test_unusual_data_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row | {"id": i} for i, row in enumerate(topic_rows(30))]
    write_rows("data.csv", [*rows, {"text": "red " * 40, "label": "colour", "id": 30}])
    write_rows("other.csv", rows[:2])
    other = ("--validation=other.csv", "--test=other.csv")
    assert classify(*other, "--on-long-text=truncate") == 0
    said = capsys.readouterr().out
    assert "ignored columns of data.csv: id" in said
    assert "rows of data.csv truncated to 16 tokens: 1 of 31" in said
    assert said.count("rows of other.csv with a text that the training rows also have: 2") == 2


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize("epochs", [0, 1])
def test_sigterm_keeps_the_best_checkpoint(
    epochs: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, loss = signal.getsignal(signal.SIGTERM), Classification.loss

    def interrupted(self: Classification, batch: Any, step: int) -> Tensor:
        if step == self.steps_per_epoch * epochs + 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return loss(self, batch, step)

    monkeypatch.setattr(Classification, "loss", interrupted)
    assert classify("--epochs=3", "--test=test.csv") == (0 if epochs else 2)
    said = capsys.readouterr()
    assert "SIGTERM has stopped the run" in said.out
    assert ("it has completed no epoch" in said.err) == (not epochs)
    assert Path("run/config.json").exists() == bool(epochs)
    if epochs:
        assert (metrics()["epochs"], metrics()["test"]["rows"]) == (1, 30)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_sparse_encoder(capsys: pytest.CaptureFixture[str]) -> None:
    assert sparse("--epochs=2") == 0
    output = capsys.readouterr().out
    assert "training pairs: 64, validation pairs: 20" in output
    assert ", validation MRR@10 0." in output
    assert "checkpoint after epoch 2 of 2: run" in output
    assert [line["epoch"] for line in history()] == [1, 2]
    names = ("mrr_at_10", "recall_at_10", "query_words", "document_words")
    assert {f"validation_{name}" for name in names} <= set(history()[0])
    assert Path("run/modules.json").is_file()
    modules = read_modules(Path("run"))
    settings = with_sparse_settings(load_checkpoint(Path("run")), Path("run"), modules).sparse
    assert settings is not None
    assert settings.pooling == SparsePooling()
    # a second run replaces its own files, and keeps no classification head of its start
    both = TiedEncoder(tiny_encoder().config, ClassifierConfig(labels=("a", "b")))
    save_checkpoint(Path("start"), both, TOKENIZER.to_str().encode())
    write_rows("pairs.csv", [{"query": "cat", "document": "katze " * 30}] * 32)
    assert sparse("--on-long-text=truncate") == 0
    assert "rows of pairs.csv truncated to 16 tokens: 32 of 32" in capsys.readouterr().out
    assert len(history()) == 1
    assert load_checkpoint(Path("run")).model.classifier is None


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (classify, "--max-tokens=17", "from 8 to 16, the maximum of the encoder (got 17)"),
        (classify, "--best-by=spearman", "--best-by must be one of accuracy, macro_f1"),
        (classify, "--validation=new.csv", "row 1: the training rows have no label 'new'"),
        (classify, "--validation=long.csv", "row 1 must have at most 16 tokens (got 42; too"),
        (classify, "--test=both.csv", "both.csv has pairs and data.csv has single texts"),
        (classify, "--output=other", "other/metrics.json exists and does not come from fillmask"),
        (classify, "--init=no_tokenizer", "no_tokenizer has no tokenizer; add tokenizer.json"),
        (sparse, "--init=few_tokens", "few_tokens: the tokenizer must have at most 30 tokens, on"),
        (sparse, "--init=labels", "labels"),
        (sparse, "--batch-rows=65", "at least 65 pairs, one batch (got 64)"),
        (sparse, "--output=start", "start/config.json; choose another output"),
        (sparse, "--output=other", "other/modules.json exists and does not come from fillmask"),
    ],
)
def test_a_mistake_is_one_message_without_a_checkpoint(
    command: Callable[[str], int], arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows("new.csv", [{"text": "x", "label": "new"}])
    write_rows("both.csv", [{"text": "x", "text_pair": "y", "label": "food"}])
    write_rows("long.csv", [{"text": "red " * 40, "label": "colour"}])
    Path("other").mkdir()
    for name in ("modules.json", "metrics.json"):
        Path("other", name).write_text("[]")
    tokenizer_json = TOKENIZER.to_str().encode()
    save_small("no_tokenizer", None)
    save_small("few_tokens", tokenizer_json, vocab_size=30)
    head = ClassifierConfig(labels=("a", "b"))
    labels = TiedEncoder(tiny_encoder().config, head)
    save_checkpoint(Path("labels"), labels, tokenizer_json, fills=False)
    assert command(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("fillmask-train: ")
    assert message in error
    assert error.count("\n") == 1
    assert not Path("run/model.safetensors").exists()

"""Files, table and continuation of `fillmask-train compare`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.classification.comparison.runs import stratified_order
from fillmask_model.classification.training import FineTuning
from fillmask_model.commands import main
from tests.model.classification.samples import TinyTask, dataset_of, topic_rows, write_rows

pytestmark = pytest.mark.slow

QUICK = ("--epochs=2", "--learning-rate=0.01", "--device=cpu", "--batch-rows=8")


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint of an encoder that has learned the topics."""
    rows = dataset_of([(row["text"], row["label"]) for row in topic_rows(150, seed=2)])
    task = TinyTask(rows, rows)
    run = task.run(epochs=3)
    run.run(lambda _: None)
    directory = tmp_path_factory.mktemp("start")
    save_checkpoint(directory, run.published_model(), task.tokenizer.to_str().encode())
    return directory


@pytest.fixture(autouse=True)
def _in_new_directory(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write data and the encoder into a new working directory."""
    monkeypatch.chdir(tmp_path)
    write_rows("data.csv", topic_rows(200))
    write_rows("validation.csv", topic_rows(60, seed=1))
    shutil.copytree(start, "start")


def compare(*arguments: str) -> int:
    files = ("data.csv", "--validation=validation.csv", "--init=start", "--output=out")
    return main(["compare", *files, *QUICK, *arguments])


def results() -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(Path("out/results.json").read_text())
    return fields


def test_a_comparison_writes_results_table_and_plot(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--sizes", "30", "12", "--seeds=2", "--baselines") == 0
    assert Path("out/comparison.png").read_bytes().startswith(b"\x89PNG")
    found = results()
    assert len(found["runs"]) == 2 * 2 * 4
    assert (found["training_rows"], found["validation_rows"]) == (200, 60)
    means = {(row["size"], row["method"]): row["mean"] for row in found["summary"]}
    assert means[30, "pretrained"] > 0.9
    assert means[30, "bag_of_words"] > 0.9
    assert means[30, "majority"] == pytest.approx(1 / 3)
    assert means[30, "pretrained"] > means[30, "from_scratch"]
    assert {len(run["accuracies"]) for run in found["runs"]} == {1, 2}
    said = capsys.readouterr()
    assert "| 12 | 0.333 (0.333 to 0.333) |" in said.out
    assert "pretrained 30 1" in said.err  # before the progress bar


def test_finished_runs_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare("--sizes", "12", "--seeds=1") == 0
    first = results()
    made: list[int] = []
    run = FineTuning.run

    def counted(self: FineTuning, *arguments: Any) -> bool:
        made.append(len(self.training.texts))
        return run(self, *arguments)

    monkeypatch.setattr(FineTuning, "run", counted)
    assert compare("--sizes", "12", "--seeds=1") == 0
    assert made == []
    assert results() == first
    assert compare("--sizes", "12", "30", "--seeds=1") == 0
    assert made == [30, 30]


def test_an_interrupted_comparison_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = FineTuning.run

    def stopped(self: FineTuning, on_epoch: Any, _stop: Any, description: str) -> bool:
        # the second run receives a stop request in its first step
        return run(self, on_epoch, lambda: description.startswith("from_scratch"), description)

    with monkeypatch.context() as patched:
        patched.setattr(FineTuning, "run", stopped)
        assert compare("--sizes", "12", "--seeds=1") == 0
    assert "The same command continues it." in capsys.readouterr().out
    assert [path.name for path in Path("out/runs").iterdir()] == ["pretrained-12-0.json"]
    assert not Path("out/results.json").exists()
    assert compare("--sizes", "12", "--seeds=1") == 0
    interrupted = results()["runs"]
    Path("out").rename("before")
    assert compare("--sizes", "12", "--seeds=1") == 0
    assert results()["runs"] == interrupted


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (("--learning-rate=0.02",), "scratch_learning_rate, training"),
        (("--scratch-learning-rate=0.02",), "scratch_learning_rate"),
        (("--pooling=first",), "pooling"),
        (("--max-tokens=12",), "max_tokens"),
    ],
)
def test_a_directory_with_other_inputs_is_rejected(
    arguments: tuple[str, ...], changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--sizes", "12", "--seeds=1") == 0
    assert compare("--sizes", "12", "--seeds=1", *arguments) == 2
    said = capsys.readouterr().err
    assert f"comparison.json has other values of {changed}; use another --output" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sizes", "12", "201"), "--sizes must be from 1 to 200"),
        (("--sizes", "0"), "(got 0)"),
        (("--seeds=0",), "--seeds must be at least 1 (got 0)"),
    ],
)
def test_impossible_sizes_are_rejected(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--sizes", "12", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path("out").exists()


def test_long_texts_are_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows("data.csv", [{"text": "red " * 99, "label": "colour"}, *topic_rows(40)])
    assert compare("--sizes", "12", "--seeds=1") == 0
    assert "rows of data.csv truncated to 16 tokens: 1 of 41" in capsys.readouterr().out


def test_every_prefix_of_the_training_rows_is_stratified() -> None:
    targets = np.array([0] * 600 + [1] * 300 + [2] * 100)
    order = stratified_order(targets, 0)
    assert sorted(order) == list(range(1000))
    for size in (10, 50, 333):
        counts = np.bincount(targets[order[:size]], minlength=3)
        np.testing.assert_allclose(counts, np.array([0.6, 0.3, 0.1]) * size, atol=1.01)
    assert order.tolist() != stratified_order(targets, 1).tolist()
    assert order.tolist() == stratified_order(targets, 0).tolist()


def test_each_size_has_its_number_of_epochs() -> None:
    assert compare("--sizes", "12", "30", "--epochs-by-size", "3", "1", "--seeds=1") == 0
    assert {(run["size"], len(run["accuracies"])) for run in results()["runs"]} == {
        (12, 3),
        (30, 1),
    }
    table = Path("out/table.md").read_text(encoding="utf-8")
    assert "| 12 |" in table
    assert "| 30 |" in table


@pytest.mark.parametrize("numbers", [("3",), ("3", "0"), ("3", "1", "1")])
def test_numbers_of_epochs_must_fit_the_sizes(
    numbers: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--sizes", "12", "30", "--epochs-by-size", *numbers) == 2
    said = capsys.readouterr().err
    assert "--epochs-by-size must have one number of at least 1 per size, 2 in total" in said

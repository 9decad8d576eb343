"""Files of the user at the paths that the commands write.

A command either ends with exit code 2 before it changes anything, or works beside the user's files.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import fillmask_export.commands
import fillmask_export.restore
import fillmask_model.commands
from fillmask_model.checkpoints.checkpoint import save_checkpoint
from tests.export.label_bundles import TEXTS, label_checkpoint, write_label_bundle
from tests.model.command_line import ENCODER, QUICK
from tests.model.fine_tuning.samples import topic_rows, write_rows
from tests.model.samples import repetitive_text, verse_tokenizer
from tests.service import tiny
from tests.service.cli.command_line import fillmask

BUNDLE = ("bundle.json", "weights.bin")
MINE = "a text of the user\n"


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with small inputs of all commands."""
    directory = tmp_path_factory.mktemp("inputs")
    checkpoint = label_checkpoint("fills", num_layers=1, type_vocab_size=0)
    save_checkpoint(directory / "start", checkpoint.model, checkpoint.tokenizer_json or b"")
    write_label_bundle(directory / "bundle", checkpoint, "int8")
    tiny.write_bundle(directory / "tiny")
    verse_tokenizer().save(str(directory / "tokenizer.json"))
    (directory / "texts").mkdir()
    (directory / "texts/text.txt").write_text(repetitive_text(60))
    (directory / "held-out.txt").write_text(repetitive_text(30))
    (directory / "encoder.json").write_text(json.dumps(ENCODER))
    (directory / "sentences.txt").write_text("\n".join(TEXTS))
    write_rows(directory / "data.csv", topic_rows(30))
    (directory / "in.jsonl").write_text('{"inputs": "the [MASK] of"}\n')
    return directory


@pytest.fixture(autouse=True)
def workplace(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """New working directory with a copy of the inputs."""
    shutil.copytree(inputs, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def train(*arguments: str) -> Callable[[], int]:
    """Return a run of `fillmask-train`."""
    return lambda: fillmask_model.commands.main(list(arguments))


def convert(*arguments: str) -> Callable[[], int]:
    """Return a run of `fillmask-export`."""
    return lambda: fillmask_export.commands.main([*arguments, "--texts=sentences.txt"])


def restore() -> int:
    """Run `python -m fillmask_export.restore`, which ends the process after an error."""
    try:
        fillmask_export.restore.main(["bundle", "out"])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def fill(output: str, source: str = "in.jsonl", *flags: str) -> Callable[[], int]:
    """Return a run of `fillmask` on a file."""

    def run() -> int:
        done = fillmask(f"--input={source}", f"--output={output}", "--bundle=tiny", *flags)
        sys.stderr.write(done.err)
        return done.code

    return run


@dataclass(frozen=True)
class Writer:
    """A command that writes.

    Attributes:
        run: function that runs the command and returns its exit code.
        paths: paths of all files and directories that the command creates.
    """

    run: Callable[[], int]
    paths: tuple[str, ...]


def under(directory: str, *names: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of names in a directory."""
    return tuple(f"{directory}/{name}" for group in names for name in group)


PRETRAIN = ("pretrain", "texts", "--tokenizer=tokenizer.json", "--config=encoder.json", *QUICK)
CLASSIFY = ("classify", "data.csv", "--init=start", "--epochs=1", "--device=cpu", "--output=out")
PRETRAINED = ("train_state.pt", "metrics.jsonl", "curve.png", "rows.safetensors")
FINE_TUNED = ("history.jsonl", "metrics.json", "curve.png", "confusion.png")
WRITERS = {
    # tests/service/cli/resume has the other files of a job
    "fillmask": Writer(
        fill("out.jsonl"), ("out.jsonl", "out.jsonl.parts", "out.jsonl.parts/job.json")
    ),
    "pretrain": Writer(
        train(*PRETRAIN, "--output=out"),
        ("out", *under("out", ["config.json", *PRETRAINED])),
    ),
    "classify": Writer(train(*CLASSIFY), ("out", *under("out", ["config.json", *FINE_TUNED]))),
    "export": Writer(convert("start", "--output=out"), ("out", *under("out", BUNDLE))),
    "export --bundles": Writer(
        convert("start", "--bundles=out"), ("out", "out/start", "out/start/bundle.json")
    ),
    "export --overwrite": Writer(
        convert("start", "--output=out", "--overwrite"), ("out", "out/weights.bin")
    ),
    "export --reference": Writer(convert("start", "--reference=out.onnx"), ("out.onnx",)),
    "restore": Writer(restore, ("out", "out/config.json")),
}
AT = [
    pytest.param(writer, path, id=f"{name}-{path}")
    for name, writer in WRITERS.items()
    for path in writer.paths
]


def contents(directory: Path) -> dict[Path, bytes]:
    """Return the content of every file under a directory by path."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def keeps(before: dict[Path, bytes]) -> bool:
    """Return whether all files still have their content."""
    return all(path.is_file() and path.read_bytes() == content for path, content in before.items())


@pytest.mark.parametrize(("writer", "path"), AT)
def test_a_directory_of_the_user_survives_every_command(
    writer: Writer, path: str, workplace: Path
) -> None:
    for name in ("cat.txt", "deeper/cat.txt"):
        file = Path(path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(MINE)
    before = contents(workplace)
    assert writer.run() in {0, 2}
    assert keeps(before)


@pytest.mark.parametrize(("writer", "path"), AT)
def test_a_file_of_the_user_survives_every_command(
    writer: Writer, path: str, workplace: Path
) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(MINE)
    before = contents(workplace)
    assert writer.run() == 2
    assert contents(workplace) == before


def copy(source: str, target: str) -> Callable[[], object]:
    """Return a function that copies an input to a path in an output."""
    return lambda: copy_now(source, target)


def copy_now(source: str, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if Path(source).is_dir() else shutil.copy)(source, target)


def linked() -> None:
    """Write a text to the path of a run's text, and a link to it."""
    copy_now("held-out.txt", "out/rows.safetensors")
    Path("link.txt").symlink_to("out/rows.safetensors")


def bundle_with_a_directory() -> None:
    """Put a directory into a bundle at the path of a file."""
    shutil.copytree("bundle", "out")
    Path("out/weights.bin").unlink()
    copy_now("texts", "out/weights.bin")


def unknown_bundle() -> None:
    """Write a bundle.json of another program."""
    Path("out").mkdir()
    Path("out/bundle.json").write_text('{"dependencies": []}')


OVERWRITE = ("--output=out", "--overwrite")
REFUSED: dict[str, tuple[Callable[[], object], Callable[[], int]]] = {
    "a link to a text in place of the rows": (
        linked,
        train(*PRETRAIN, "--held-out=link.txt", "--output=out"),
    ),
    "the start of pretraining": (
        list,
        train("pretrain", "texts", "--init=start", *QUICK, "--output=start/../start"),
    ),
    "the tokenizer of pretraining": (
        copy("tokenizer.json", "out/tokenizer.json"),
        train(*PRETRAIN, "--tokenizer=out/tokenizer.json", "--output=out"),
    ),
    "the start of fine-tuning": (list, train(*CLASSIFY, "--output=start")),
    "the data of fine-tuning": (
        lambda: write_rows(Path("start/history.jsonl"), topic_rows(30)),
        train("classify", "start/history.jsonl", "--init=out", "--output=start"),
    ),
    "a checkpoint with a bundle.json": (
        copy("bundle/bundle.json", "start/bundle.json"),
        convert("start", "--output=start", "--overwrite"),
    ),
    "a bundle of another program": (unknown_bundle, convert("start", *OVERWRITE)),
    "a directory in place of weights": (bundle_with_a_directory, convert("start", *OVERWRITE)),
    "the bundle of a restored checkpoint": (copy("bundle", "out"), restore),
}


@pytest.mark.parametrize(("prepare", "run"), REFUSED.values(), ids=REFUSED)
def test_inputs_that_a_command_would_replace_are_refused(
    prepare: Callable[[], object],
    run: Callable[[], int],
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare()
    capsys.readouterr()
    before = contents(workplace)
    assert run() == 2
    assert contents(workplace) == before
    assert "choose another" in capsys.readouterr().err.splitlines()[-1]

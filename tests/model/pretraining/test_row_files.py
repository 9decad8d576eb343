"""Arrays of a run on disk, written once and mapped afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fillmask_model.pretraining import texts
from fillmask_model.pretraining.row_files import has_arrays, load_or_build_arrays
from fillmask_model.pretraining.rows import TokenRows
from fillmask_model.pretraining.texts import TrainingText
from tests.model.command_line import pretrain
from tests.model.samples import repetitive_text

KEY = {"texts": "a", "held_out": "b", "tokenizer": "c"}
OTHER_KEY = KEY | {"texts": "b"}


def arrays(largest: int = 60_000) -> dict[str, TokenRows]:
    """Return rows with short texts, whose names have lengths of one to four digits."""
    packed = np.arange(24, dtype=np.int32).reshape(3, 8)
    packed[0, 0] = largest
    short = {f"short_{n:04}": np.full((n, n), n, np.int32) for n in (6, 64, 128, 1024)}
    return {"packed": packed, "held_out": np.ones((2, 8), np.int32), **short}


def unexpected() -> dict[str, TokenRows]:
    raise AssertionError("rows are made although they are on the disk")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "rows"


@pytest.mark.parametrize(("largest", "dtype"), [(65_535, np.uint16), (65_536, np.int32)])
def test_rows_are_made_once_and_mapped(
    directory: Path, largest: int, dtype: type[np.generic]
) -> None:
    # Token ids take two bytes each if all ids are below 65,536.
    for make in (lambda: arrays(largest), unexpected):
        stored = load_or_build_arrays(directory, KEY, make)
        assert all(isinstance(part, np.memmap) for part in stored.values())
        for name, part in arrays(largest).items():
            np.testing.assert_array_equal(stored[name], part)
        assert stored["packed"].dtype == dtype
    text = TrainingText.from_arrays(stored)
    assert list(text.short) == [6, 64, 128, 1024]
    assert all(rows.shape == (n, n) for n, rows in text.short.items())


def test_rows_of_another_key_are_replaced_and_files_of_the_user_stay(directory: Path) -> None:
    load_or_build_arrays(directory, KEY, arrays)
    for name in ("notes.txt", "mine.npy"):
        (directory / name).write_text("mine")
    with pytest.raises(AssertionError):
        load_or_build_arrays(directory, OTHER_KEY, unexpected)
    load_or_build_arrays(directory, KEY, unexpected)
    other = {name: np.zeros((1, 8), np.int32) for name in ("packed", "held_out")}
    stored = load_or_build_arrays(directory, OTHER_KEY, lambda: other)
    assert set(stored) == set(other)
    assert stored["packed"].shape == (1, 8)
    assert [(directory / name).read_text() for name in ("notes.txt", "mine.npy")] == ["mine"] * 2


def test_rows_cut_short_are_made_again(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The key of incomplete files has a mark, so that only the next run replaces them.
    saved = np.save

    def killed(*arguments: object) -> None:
        saved(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            load_or_build_arrays(directory, KEY, arrays)
    (directory / "packed.npy.tmp").write_bytes(b"\x93NUMPY")
    assert has_arrays(directory)
    stored = load_or_build_arrays(directory, KEY, arrays)
    np.testing.assert_array_equal(stored["packed"], arrays()["packed"])
    assert not (directory / "packed.npy.tmp").exists()


@pytest.mark.parametrize("names", [[], ["key.json.tmp"]])
def test_a_directory_without_its_first_key_is_used(directory: Path, names: list[str]) -> None:
    # A process that is killed while it writes the first key leaves such a directory.
    directory.mkdir()
    for name in names:
        (directory / name).write_text('{"texts"')
    assert "packed" in load_or_build_arrays(directory, KEY, arrays)


USER_FILES = {
    "no key": {"packed.npy": "mine"},
    "another key": {"key.json": '{"secret": 1}', "packed.npy": "mine"},
    "a broken key": {"key.json": "{", "packed.npy": "mine"},
}


@pytest.mark.parametrize("files", USER_FILES.values(), ids=USER_FILES)
def test_a_directory_of_the_user_is_rejected(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_text(content)
    with pytest.raises(ValueError, match="rows exists and does not come from fillmask-train"):
        load_or_build_arrays(directory, KEY, arrays)
    assert {path.name: path.read_text() for path in directory.iterdir()} == files


def test_a_resumed_run_tokenizes_nothing(
    workplace: Path, no_curve: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--output=run", "--short-share=0.5")
    assert pretrain(*arguments, "--until-step=2") == 0
    with monkeypatch.context() as patch:
        patch.setattr(texts, "pack_rows", None)
        patch.setattr(texts, "short_rows", None)
        assert pretrain(*arguments, "--resume", "--until-step=3") == 0
    before = {path.name: path.stat().st_size for path in Path("run/rows").glob("*.npy")}
    assert {name.partition("_")[0] for name in before} == {"packed.npy", "held", "short"}
    Path("text.txt").write_text(repetitive_text(90))
    assert pretrain(*arguments, "--until-step=1") == 0
    after = {path.name: path.stat().st_size for path in Path("run/rows").glob("*.npy")}
    assert sum(after.values()) > 1.2 * sum(before.values())

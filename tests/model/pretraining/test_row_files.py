"""Arrays of a run on disk, written once and mapped afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fillmask_model.pretraining import row_files, texts
from fillmask_model.pretraining.row_files import load_or_build_arrays, read_key
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
    return {"packed": packed[::-1], "held_out": np.empty((0, 8), np.int32), **short}


def unexpected() -> dict[str, TokenRows]:
    raise AssertionError("rows are made although they are on the disk")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "rows.safetensors"


@pytest.mark.parametrize(("largest", "dtype"), [(65_535, np.uint16), (65_536, np.int32)])
def test_rows_are_made_once_and_mapped(path: Path, largest: int, dtype: type[np.generic]) -> None:
    # Token ids take two bytes each if all ids are below 65,536.
    for make in (lambda: arrays(largest), unexpected):
        stored = load_or_build_arrays(path, KEY, make)
        for name, part in arrays(largest).items():
            np.testing.assert_array_equal(stored[name], part)
        assert stored["packed"].dtype == dtype
    assert any(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines())
    text = TrainingText.from_arrays(stored)
    assert list(text.short) == [6, 64, 128, 1024]
    assert all(rows.shape == (n, n) for n, rows in text.short.items())


def test_rows_of_another_key_are_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A run that is killed before the end leaves the rows from before.
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    load_or_build_arrays(path, KEY, arrays)
    with monkeypatch.context() as patch:
        patch.setattr(row_files, "save_file", killed)
        with pytest.raises(KeyboardInterrupt):
            load_or_build_arrays(path, OTHER_KEY, arrays)
    load_or_build_arrays(path, KEY, unexpected)
    other = {name: np.zeros((1, 8), np.int32) for name in ("packed", "held_out")}
    assert load_or_build_arrays(path, OTHER_KEY, lambda: other).keys() == other.keys()
    assert read_key(path) == OTHER_KEY


def test_a_resumed_run_tokenizes_nothing(
    workplace: Path, no_curve: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--output=run", "--short-share=0.5")
    assert pretrain(*arguments, "--until-step=2") == 0
    with monkeypatch.context() as patch:
        patch.setattr(texts, "pack_rows", None)
        patch.setattr(texts, "short_rows", None)
        assert pretrain(*arguments, "--resume", "--until-step=3") == 0
    before = Path("run/rows.safetensors").stat().st_size
    Path("text.txt").write_text(repetitive_text(90))
    assert pretrain(*arguments, "--until-step=1") == 0
    assert Path("run/rows.safetensors").stat().st_size > 1.2 * before

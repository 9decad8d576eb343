"""Rows of a run on disk, written once and mapped afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model.data.corpus import TokenRows
from model.data.row_files import TrainingRows, load_or_build_rows, sha256_of
from model.training import commands
from tests.model.command_line import pretrain
from tests.model.samples import repetitive_text


def some_rows(largest: int = 60_000) -> TrainingRows:
    """Return rows with short texts whose lengths have one to four digits.

    The names of the stored arrays contain the lengths.
    """
    packed = np.arange(24, dtype=np.int32).reshape(3, 8)
    packed[0, 0] = largest
    return TrainingRows(
        packed=packed,
        held_out=np.ones((2, 8), np.int32),
        short={n: np.full((n, n), n, np.int32) for n in (6, 7, 64, 128, 1024)},
    )


def unexpected() -> TrainingRows:
    """Fail, because the rows must come from the disk."""
    raise AssertionError("rows are made although they are on the disk")


@pytest.mark.parametrize(
    ("largest", "dtype"), [(60_000, np.uint16), (65_535, np.uint16), (65_536, np.int32)]
)
def test_rows_are_made_once_and_mapped(
    tmp_path: Path, largest: int, dtype: type[np.generic]
) -> None:
    # Token ids take two bytes each if all ids are below 65,536.
    made, key = some_rows(largest), {"texts": "a"}
    for make in (lambda: made, unexpected):
        rows = load_or_build_rows(tmp_path / "rows", key, make)
        pairs: list[tuple[TokenRows, TokenRows]] = [
            (rows.packed, made.packed),
            (rows.held_out, made.held_out),
            *((rows.short[n], made.short[n]) for n in made.short),
        ]
        assert list(rows.short) == list(made.short)
        for stored, original in pairs:
            assert isinstance(stored, np.memmap)
            np.testing.assert_array_equal(stored, original)
        assert rows.packed.dtype == dtype


def test_rows_of_another_key_are_replaced(tmp_path: Path) -> None:
    load_or_build_rows(tmp_path / "rows", {"texts": "a"}, some_rows)
    other = TrainingRows(np.zeros((1, 8), np.int32), np.zeros((1, 8), np.int32), {})
    rows = load_or_build_rows(tmp_path / "rows", {"texts": "b"}, lambda: other)
    assert rows.packed.shape == (1, 8)
    assert rows.short == {}


def test_rows_cut_short_are_made_again(tmp_path: Path) -> None:
    # A process that is killed early leaves no key.json, the mark of complete files.
    load_or_build_rows(tmp_path / "rows", {"texts": "a"}, some_rows)
    (tmp_path / "rows" / "key.json").unlink()
    (tmp_path / "rows" / "packed.npy").write_bytes(b"\x93NUMPY")
    rows = load_or_build_rows(tmp_path / "rows", {"texts": "a"}, some_rows)
    np.testing.assert_array_equal(rows.packed, some_rows().packed)


def test_a_digest_follows_contents_and_their_parts(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one")
    b.write_text("two")
    assert sha256_of([a, b]) != sha256_of([b, a]) != sha256_of([a])
    before = sha256_of([a])
    a.write_text("once")
    assert sha256_of([a]) != before


def test_a_resumed_run_tokenizes_nothing(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--output=run", "--short-share=0.5")
    assert pretrain(*arguments, "--until-step=2") == 0
    tokenized: list[str] = []
    for name in ("pack_rows", "short_rows"):
        function = getattr(commands, name)

        def spy(*given: object, _name: str = name, _function: object = function) -> object:
            tokenized.append(_name)
            return _function(*given)  # type: ignore[operator]

        monkeypatch.setattr(commands, name, spy)
    assert pretrain(*arguments, "--resume", "--until-step=3") == 0
    assert tokenized == []
    Path("text.txt").write_text(repetitive_text(70))
    assert pretrain(*arguments, "--resume") == 0
    assert tokenized == ["pack_rows", "short_rows"]

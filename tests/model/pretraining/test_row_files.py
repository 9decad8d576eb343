"""Rows of a run on disk, written once and mapped afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fillmask_model.files import sha256_of
from fillmask_model.pretraining import commands
from fillmask_model.pretraining.row_files import TrainingRows, has_arrays, load_or_build_rows
from fillmask_model.pretraining.rows import TokenRows
from tests.model.command_line import pretrain
from tests.model.samples import repetitive_text

KEY = {"texts": "a", "held_out": "b", "tokenizer": "c"}


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
    made, key = some_rows(largest), KEY
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
    load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    other = TrainingRows(np.zeros((1, 8), np.int32), np.zeros((1, 8), np.int32), {})
    rows = load_or_build_rows(tmp_path / "rows", KEY | {"texts": "b"}, lambda: other)
    assert rows.packed.shape == (1, 8)
    assert rows.short == {}


def test_rows_cut_short_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The key of incomplete files has a mark, so that only the next run replaces them.
    saved = np.save

    def killed(*arguments: object) -> None:
        saved(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    (tmp_path / "rows" / "packed.npy.tmp").write_bytes(b"\x93NUMPY")
    assert has_arrays(tmp_path / "rows")
    rows = load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    np.testing.assert_array_equal(rows.packed, some_rows().packed)
    assert not (tmp_path / "rows" / "packed.npy.tmp").exists()


@pytest.mark.parametrize("names", [[], ["key.json.tmp"]])
def test_a_directory_without_its_first_key_is_used(tmp_path: Path, names: list[str]) -> None:
    # A process that is killed while it writes the first key leaves such a directory.
    (tmp_path / "rows").mkdir()
    for name in names:
        (tmp_path / "rows" / name).write_text('{"texts"')
    rows = load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    np.testing.assert_array_equal(rows.packed, some_rows().packed)


USER_FILES = {
    "no key": {"packed.npy": "mine"},
    "another key": {"key.json": '{"secret": 1}', "packed.npy": "mine"},
    "a broken key": {"key.json": "{", "packed.npy": "mine"},
    "no arrays": {"cat.txt": "mine", "deeper/cat.txt": "mine"},
}


@pytest.mark.parametrize("files", USER_FILES.values(), ids=USER_FILES)
def test_a_directory_of_the_user_is_rejected(tmp_path: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = tmp_path / "rows" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with pytest.raises(ValueError, match="rows exists and does not come from fillmask-train"):
        load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    assert {
        str(path.relative_to(tmp_path / "rows")): path.read_text()
        for path in (tmp_path / "rows").rglob("*")
        if path.is_file()
    } == files


def test_files_of_the_user_beside_replaced_rows_stay(tmp_path: Path) -> None:
    load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    for name in ("notes.txt", "mine.npy"):
        (tmp_path / "rows" / name).write_text("mine")
    rows = load_or_build_rows(tmp_path / "rows", KEY | {"texts": "b"}, some_rows)
    np.testing.assert_array_equal(rows.packed, some_rows().packed)
    assert {(tmp_path / "rows" / name).read_text() for name in ("notes.txt", "mine.npy")} == {
        "mine"
    }


def test_an_error_keeps_the_rows_from_before(tmp_path: Path) -> None:
    load_or_build_rows(tmp_path / "rows", KEY, some_rows)
    with pytest.raises(AssertionError):
        load_or_build_rows(tmp_path / "rows", KEY | {"texts": "b"}, unexpected)
    load_or_build_rows(tmp_path / "rows", KEY, unexpected)


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
    assert pretrain(*arguments, "--until-step=1") == 0
    assert tokenized == ["pack_rows", "short_rows"]

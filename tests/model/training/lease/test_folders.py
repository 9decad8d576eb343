"""Folders that travel."""

from __future__ import annotations

from pathlib import Path

import pytest

from fillmask_model.training.lease.folders import Folder, write_folder

CONTENT = bytes(range(256)) * 10


def write(directory: Path, content: bytes = CONTENT, mark: str = "") -> Folder:
    return write_folder(directory, "load", {"a": 1}, {"rows": content}, part_bytes=1_000, mark=mark)


def test_a_content_comes_back_from_parts_of_limited_size(tmp_path: Path) -> None:
    write(tmp_path / "load")
    folder = Folder.open(tmp_path / "load", "load")
    assert folder.fields == {"a": 1}
    assert folder.read("rows") == CONTENT
    sizes = {path.name: path.stat().st_size for path in folder.directory.glob("rows.*")}
    assert sizes == {"rows.0": 1_000, "rows.1": 1_000, "rows.2": 560}
    assert folder.size == sum(path.stat().st_size for path in folder.directory.iterdir())
    folder.check()


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (tmp_path / "rows.1").unlink()
    with pytest.raises(ValueError, match=r"rows\.1 is missing; copy the whole folder again"):
        folder.check()


@pytest.mark.parametrize("change", [b"", CONTENT[:999], b"\1" * 1_000])
def test_a_damaged_part_is_named(tmp_path: Path, change: bytes) -> None:
    folder = write(tmp_path)
    (tmp_path / "rows.1").write_bytes(change)
    with pytest.raises(ValueError, match=rf"rows\.1 must have the 1000 .*\(got {len(change)} "):
        folder.read("rows")


def test_a_new_writing_replaces_the_old_parts_only(tmp_path: Path) -> None:
    write(tmp_path, mark="_1")
    (tmp_path / "mine.txt").touch()
    folder = write(tmp_path, content=b"short", mark="_2")
    assert folder.read("rows") == b"short"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"manifest.json", "rows_2.0", "mine.txt"}


def test_a_writer_that_is_killed_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, mark="_1")
    written = Path.write_text

    def dying(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", dying)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, content=b"new", mark="_2")
    monkeypatch.setattr(Path, "write_text", written)
    assert Folder.open(tmp_path, "load").read("rows") == CONTENT


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(ValueError, match=r"must be the manifest of a weights .*got 'load' in form"):
        Folder.open(tmp_path, "weights")


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"manifest\.json does not exist"):
        Folder.open(tmp_path, "load")


def test_a_manifest_cannot_read_outside_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "load")
    manifest = tmp_path / "load" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"rows.1"', '"../secret"'))
    with pytest.raises(ValueError, match="must name files without a path"):
        Folder.open(tmp_path / "load", "load").check()

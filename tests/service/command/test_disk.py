"""Files on the disk: whole, or not there."""

import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

from service.command.disk import put, write_json


def test_json_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there before stays until then."""
    path = tmp_path / "a.json"
    write_json(path, {"é": 1})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": 1}

    def fail(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"é": 2})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": 1}


def test_a_file_takes_the_place_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where directories cannot be synchronised."""

    def refuse(_descriptor: int) -> NoReturn:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    put(tmp_path / "new", tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "new"

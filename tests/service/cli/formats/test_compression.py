"""Compressed inputs: what tells the compression, damage, bounded memory."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fillmask.cli.formats.by_extension import open_rows
from fillmask.tables.streams import TableError
from tests.service.cli.command_line import COMPRESS, fields_in


def fields_of(path: Path) -> list[Any]:
    return fields_in(open_rows(path, "inputs"))


@pytest.mark.parametrize("compression", COMPRESS)
def test_the_content_and_not_the_name_tells_the_compression(
    tmp_path: Path, compression: str
) -> None:
    packed, plain = tmp_path / "packed.csv", tmp_path / f"plain.csv{compression}"
    packed.write_bytes(COMPRESS[compression](b"inputs\na\nb\n"))
    plain.write_bytes(b"inputs\na\nb\n")
    assert fields_of(packed) == fields_of(plain) == [{"inputs": "a"}, {"inputs": "b"}]


def test_the_largest_window_of_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 2 GiB, as of zstd --long=31. The image has no pyarrow.
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "rows.txt.zst"
    path.write_bytes(bytes.fromhex("28b52ffd00a8110000610a"))
    assert fields_of(path) == [{"inputs": "a"}]


@pytest.mark.parametrize("compression", COMPRESS)
def test_several_compressed_files_in_one(tmp_path: Path, compression: str) -> None:
    # as `cat` joins them
    path = tmp_path / f"rows.txt{compression}"
    path.write_bytes(b"".join(COMPRESS[compression](b"%d\n" % number) for number in range(3)))
    assert fields_of(path) == [{"inputs": "0"}, {"inputs": "1"}, {"inputs": "2"}]


@pytest.mark.parametrize("compression", COMPRESS)
def test_damaged_files(tmp_path: Path, compression: str) -> None:
    whole = COMPRESS[compression](b"inputs\n" + bytes(range(48, 58)) * 100)
    path = tmp_path / f"rows.csv{compression}"
    for damaged in (whole[:-9], whole[:6] + b"\xff" * 12 + whole[18:]):
        path.write_bytes(damaged)
        with pytest.raises(TableError, match=rf"{path.name} is damaged \(.*\); create"):
            fields_of(path)


def test_content_is_read_as_a_stream(tmp_path: Path) -> None:
    # A row is read before the damage of a later one is found, so nothing holds the whole content.
    lines = b"".join(json.dumps({"n": n, "x": "x" * 1000}).encode() + b"\n" for n in range(3_000))
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(lines)[:-4])
    blocks = open_rows(path, "inputs").blocks()
    assert next(blocks).rows()[0].fields["n"] == 0
    with pytest.raises(TableError, match="is damaged"):
        list(blocks)
    assert len(list(open_rows(path, "inputs").blocks(0, 9))) == 1

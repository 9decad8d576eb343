"""Choice of a format by the suffix of the file's name. Parquet needs pyarrow."""

import sys
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import BLOCK_ROWS
from fillmask.cli.formats.by_extension import open_rows
from fillmask.tables.delimited import DEFAULT, Dialect
from tests.service.cli.command_line import fields_in, write_texts
from tests.service.cli.formats.written import write

READ = ["a.csv", "a.tsv", "a.json", "a.txt", "A.PARQUET", "a.ndjson", "A.CSV.GZ", "a.jsonl.zst"]


@pytest.mark.parametrize("name", [*READ, "a.json.xz", "folder"])
def test_any_part_of_any_file(tmp_path: Path, name: str) -> None:
    # The files of a folder are one input, in the order of their names. Spark and others hide files
    # with an underscore or a dot.
    texts = [f"text {number}" for number in range(2 * BLOCK_ROWS + 9)]
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        parts = dict(zip("abcde", pairwise((0, 3, 300, 301, 400, None)), strict=True))
        for part in "bdaec":
            write_texts(path / f"{part}.parquet", texts[slice(*parts[part])])
        for hidden in ("_SUCCESS", ".a.parquet.crc"):
            (path / hidden).touch()
    else:
        write_texts(tmp_path / name.lower(), texts).rename(path)
    rows = open_rows(path, "inputs")
    assert (rows.count(), rows.find_columns()) == (len(texts), ("inputs",))
    edges = (0, 1, 3, BLOCK_ROWS - 1, BLOCK_ROWS + 1, 300, len(texts))
    for start, stop in [*combinations(edges, 2), (7, None), (9, 9), (len(texts), None)]:
        assert fields_in(rows, start, stop) == [{"inputs": text} for text in texts[start:stop]]
        blocks = list(rows.blocks(start, stop))
        assert all(0 < len(block) <= BLOCK_ROWS for block in blocks)
        for block in blocks:
            assert block.rows()[0].fields == {"inputs": texts[block.first]}
    [block] = rows.blocks(301, 309)
    part_of_it = block.slice(1, 3)
    assert part_of_it.first == 302
    assert [row.fields["inputs"] for row in part_of_it.rows()] == texts[302:304]


ENDING = (
    'The command cannot read "{}"; the name must end in .jsonl, .ndjson, .csv, .tsv, .json, .txt '
    "or .parquet. After .jsonl, .ndjson, .csv, .tsv, .json or .txt, it may have .gz, .zst or .xz."
)
UNREADABLE = (
    "The command cannot read {}/none.csv (no such file or directory); give a readable file."
)
SEVERAL = (
    "{}/two has several files, of which a.csv is not Parquet; set --input to one file, or to a "
    "pattern such as '*.parquet'."
)
NO_FILES = "{} has no files; set --input to a file, a folder or a pattern."
NO_MEANING = "--{} has no meaning for {}; remove it."
NAMES = ["a", "a.xml", "a.gz", "a.jsonl.bz2", "a.parquet.gz", ".csv"]


@pytest.mark.parametrize(
    ("name", "dialect", "sentence"),
    [
        *((name, DEFAULT, ENDING.format(name)) for name in NAMES),
        ("none.csv", DEFAULT, UNREADABLE),
        ("d.csv", DEFAULT, NO_FILES.format("{}/d.csv")),
        ("*.json", DEFAULT, NO_FILES.format("{}/*.json")),
        ("two", DEFAULT, SEVERAL),
        ("part=1", DEFAULT, "{}/part=1/b.parquet is not a file; set --input to a file."),
        ("a.parquet", Dialect(encoding="cp1252"), NO_MEANING.format("encoding", "a.parquet")),
        ("a.txt", Dialect(delimiter=";"), NO_MEANING.format("delimiter", "a.txt")),
        ("a.jsonl", Dialect(quoting="none"), NO_MEANING.format("quoting", "a.jsonl")),
    ],
)
def test_inputs_that_cannot_be_read(
    tmp_path: Path, name: str, dialect: Dialect, sentence: str
) -> None:
    for folder in ("d.csv", "two", "part=1/b.parquet"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("two/a.csv", "two/b.parquet", "a.parquet", "a.txt", "a.jsonl"):
        (tmp_path / file).touch()
    with pytest.raises(CommandError) as caught:
        open_rows(tmp_path / name, "inputs", dialect)
    assert str(caught.value) == sentence.replace("{}", str(tmp_path))


@pytest.mark.parametrize("source", ["folder", "folder/a*.csv"])
def test_a_single_file_of_a_folder_may_have_any_format(tmp_path: Path, source: str) -> None:
    (tmp_path / "folder").mkdir()
    write_texts(tmp_path / "folder" / "a.csv", ["a"])
    rows = open_rows(tmp_path / source, "inputs")
    assert (rows.name, rows.count()) == ("a.csv", 1)


def test_parquet_without_pyarrow_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("rows", "writer"):
        monkeypatch.delitem(sys.modules, f"fillmask.cli.formats.parquet_{module}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.txt"
    path.touch()
    with pytest.raises(CommandError) as caught:
        write(path, "parquet", [])
    assert str(caught.value) == (
        "out.parquet needs pyarrow, which is not installed here; use fillmask with its extra "
        "parquet (docs/install.md), or a file of another format."
    )
    path = tmp_path / "a.parquet"
    path.touch()
    with pytest.raises(CommandError, match=r"a.parquet needs pyarrow"):
        open_rows(path, "inputs")

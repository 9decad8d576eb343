"""Files of labelled texts and of pairs, and the errors about their rows."""

from __future__ import annotations

import json
import lzma
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fillmask.tables.delimited import Dialect
from fillmask_model.encoder.classifier import ProblemType
from fillmask_model.fine_tuning.labels import Columns, read_dataset
from fillmask_model.fine_tuning.pairs import read_pairs
from fillmask_model.fine_tuning.tables import Dataset
from tests.model.fine_tuning.samples import MULTI, SINGLE, write_rows

ROWS = [
    {"text": 'He said "no", twice', "text_pair": "Why?", "label": "a"},
    {"text": "Ünïcode text", "text_pair": "Yes", "label": "b"},
]


@pytest.fixture(autouse=True)
def _in_new_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: Path, problem_type: ProblemType = SINGLE, **columns: Any) -> Dataset:
    return read_dataset(path, Columns(**columns), problem_type)


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl", "data.csv.xz"])
def test_all_formats_give_the_same_examples(name: str) -> None:
    path = write_rows(name.removesuffix(".xz"), ROWS)
    if name == "data.tsv":
        lines = ["\t".join(ROWS[0]), *("\t".join(row.values()) for row in ROWS)]
        path.write_text("\n".join(lines) + "\n")
    if name.endswith(".xz"):
        Path(name).write_bytes(lzma.compress(path.read_bytes()))
    dataset = read(Path(name))
    assert [(e.row, e.text, e.text_pair, e.labels) for e in dataset.examples] == [
        (1, 'He said "no", twice', "Why?", ("a",)),
        (2, "Ünïcode text", "Yes", ("b",)),
    ]
    assert dataset.has_pairs


def test_columns_can_have_other_names() -> None:
    path = write_rows("data.csv", [{"q": "x", "a": "y", "kind": "k", "id": "1"}])
    dataset = read(path, text="q", text_pair="a", label="kind")
    (example,) = dataset.examples
    assert (example.texts, example.labels) == (("x", "y"), ("k",))
    assert dataset.ignored_columns == ("id",)
    assert not read(path, text="q", label="kind").has_pairs
    queries, documents = read_pairs(path, "a", "q")
    assert [queries.examples[0].text, documents.examples[0].text] == ["y", "x"]


def test_labels_of_several_kinds() -> None:
    single = write_rows("single.jsonl", [{"text": "x", "label": 3}, {"text": "y", "label": "3"}])
    assert {e.labels for e in read(single).examples} == {("3",)}
    listed = write_rows("m.jsonl", [{"text": "x", "label": ["a", "b"]}, {"text": "y", "label": []}])
    joined = write_rows("m.csv", [{"text": "x", "label": "a|b"}, {"text": "y", "label": ""}])
    for path in (listed, joined):
        assert [e.labels for e in read(path, MULTI).examples] == [("a", "b"), ()]
    numbers = write_rows("r.csv", [{"text": "x", "label": "1.5"}, {"text": "y", "label": -2}])
    assert [e.value for e in read(numbers, "regression").examples] == [1.5, -2.0]


HEADER = "text,label\n"


@pytest.mark.parametrize(
    ("name", "content", "problem_type", "message"),
    [
        ("d.csv", HEADER + "x,a\n ,b\n", SINGLE, "d.csv, row 2: text must not be blank"),
        ("d.csv", HEADER + "x,a\ny\n", SINGLE, "d.csv, line 3 must have 2 cells, like the header"),
        ("d.jsonl", "", SINGLE, "d.jsonl must contain at least one row"),
        ("d.csv", "text,text_pair,label\nx,,a\n", SINGLE, "row 1: text_pair must not be blank"),
        ("d.txt", "x", SINGLE, r"d.txt must end in .csv, .tsv, .jsonl.*\(got '.txt'\)"),
        ("d.csv", HEADER + "x,nan\n", "regression", "row 1: label must be a number"),
        ("d.csv", HEADER + "x,a|b|a\n", MULTI, r"must not repeat a label \(got a, b, a\)"),
        ("d.csv", HEADER + "x,a||b\n", MULTI, "row 1: label must not be blank"),
        ("d.jsonl", '{"text": "x", "label": 1}\n{"label": 1}\n', SINGLE, "row 2: text is missing"),
        ("d.jsonl", '{"text": "x", "label": 1}\n{"text": "y"}\n', SINGLE, "row 2: label is missi"),
        ("d.jsonl", '{"text": 5, "label": 1}\n', SINGLE, r"row 1: text must be a text \(got 5\)"),
        ("d.jsonl", '{"text": "x", "label": true}\n', SINGLE, "a whole number .got True"),
        ("d.jsonl", '{"text": "x", "label": true}\n', "regression", "must be a number .got True"),
        ("d.jsonl", '{"text": "x", "label": 7}\n', MULTI, r"a list of labels \(got 7\)"),
        ("d.jsonl", '{"text": "\\ud800", "label": 1}\n', SINGLE, "row 1: text has an unpaired"),
        ("d.jsonl", '{"text": "x"\n', SINGLE, "d.jsonl, row 1 is not valid JSON"),
        ("d.jsonl", "[1]\n", SINGLE, r"d.jsonl, row 1 must be a JSON object \(got \[1\]\)"),
    ],
)
def test_bad_rows_are_named(name: str, content: str, problem_type: Any, message: str) -> None:
    Path(name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read(Path(name), problem_type)


@pytest.mark.parametrize(
    ("read_columns", "flag"),
    [
        (partial(read, text="other"), "text"),
        (partial(read, text_pair="other"), "text-pair"),
        (partial(read, label="other"), "label"),
        (partial(read_pairs, query_column="other", document_column="text"), "query"),
        (partial(read_pairs, query_column="text", document_column="other"), "document"),
    ],
)
def test_a_missing_column_names_its_flag(read_columns: Any, flag: str) -> None:
    path = write_rows("data.csv", [{"text": "x", "label": "a"}])
    with pytest.raises(ValueError, match=rf"'other' \(got text, label\); set --{flag}-column"):
        read_columns(path)


def test_the_first_five_bad_rows_are_named_and_the_others_counted() -> None:
    rows = [{"text": "" if i % 2 else "x", "label": "a"} for i in range(16)]
    with pytest.raises(ValueError, match="row 2: text must not be blank") as raised:
        read(write_rows("data.csv", rows))
    lines = str(raised.value).splitlines()
    assert [line.split(":")[0] for line in lines[:5]] == [
        f"data.csv, row {row}" for row in (2, 4, 6, 8, 10)
    ]
    assert lines[5:] == ["number of further invalid rows in data.csv: 3"]


def test_tables_are_read_as_by_fillmask(capsys: pytest.CaptureFixture[str]) -> None:
    # More tables are in tests/service/tables.
    Path("a.csv").write_bytes("text;label\n\ncafé;a\n".encode("cp1252"))
    [example] = read(Path("a.csv"), dialect=Dialect(encoding="cp1252")).examples
    assert (example.row, example.text) == (1, "café")
    assert "a.csv is read with --delimiter ; and --quoting csv" in capsys.readouterr().err
    Path("a.jsonl").write_text(f"\ufeff{json.dumps({'text': 'é', 'label': 1})}\n\n")
    assert [(e.row, e.text) for e in read(Path("a.jsonl")).examples] == [(1, "é")]

"""Labels of one text and of files in every format, equal to the responses of /classify."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from fillmask.cli.pipeline import RowPipeline
from tests.service.classifiers import LABELS, write_classifier
from tests.service.cli.command_line import Done, fillmask, numbered, read_csv, read_rows, write_rows

TEXT, PAIR = "the dog barked", "a cup of tea"
ROWS: list[dict[str, Any]] = [
    {"inputs": TEXT},
    {"inputs": TEXT, "text_pair": PAIR, "id": 1.50},
    {"inputs": "paris", "parameters": {"top_k": 1}},
    {"inputs": "rome is", "text_pair": None, "parameters": {"function_to_apply": "none"}},
    {"inputs": "a [MASK] is a mask", "text_pair": ""},
]


def labels_of(client: TestClient, row: dict[str, Any], **parameters: Any) -> Any:
    """Return the labels that /classify returns for a row."""
    inputs = row["inputs"]
    if row.get("text_pair"):
        inputs = {"text": inputs, "text_pair": row["text_pair"]}
    body = {"inputs": inputs, "parameters": parameters | row.get("parameters", {})}
    response = client.post("/classify", json=body)
    assert response.status_code == 200, response.text
    [labels] = response.json()
    return labels


def classify(bundle: Path, source: Path, output: object, *flags: object) -> Done:
    return fillmask(
        "--task=classify", "--input", source, "--output", output, "--bundle", bundle, *flags
    )


@pytest.mark.parametrize("second", [None, PAIR])
@pytest.mark.parametrize("parameters", [{}, {"top_k": 2, "function_to_apply": "sigmoid"}])
def test_json_equals_the_http_response(
    topics: Path, topics_client: TestClient, second: str | None, parameters: dict[str, Any]
) -> None:
    # The command prints the response of /classify, with or without a second text.
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in parameters.items()]
    if second:
        flags += ["--text-pair", second]
    done = fillmask("--task=classify", TEXT, "--json", "--bundle", topics, *flags)
    inputs = {"text": TEXT, "text_pair": second}
    answer = topics_client.post("/classify", json={"inputs": inputs, "parameters": parameters})
    assert (done.code, done.err) == (0, "")
    assert done.out.encode() == answer.content + b"\n"


def test_a_table_has_bars_for_probabilities(topics: Path, topics_client: TestClient) -> None:
    table = fillmask("--task=classify", TEXT, "--bundle", topics).out.splitlines()
    labels = labels_of(topics_client, {"inputs": TEXT})
    assert {label["label"] for label in labels} == set(LABELS)
    for line, label in zip(table, labels, strict=True):
        score, *_, name = line.split()
        assert (score, name) == (f"{label['score']:.4f}", label["label"])
    assert "█" in table[0]


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_table_of_logits_has_no_bars(topics: Path, tmp_path: Path, *, by_flag: bool) -> None:
    # Scores are logits for the function none, which is the default for regression.
    if by_flag:
        done = fillmask("--task=classify", TEXT, "--bundle", topics, "--function-to-apply=none")
    else:
        stars = write_classifier(tmp_path / "stars", labels=("stars",), problem_type="regression")
        done = fillmask("--task=classify", TEXT, "--bundle", stars)
    assert done.code == 0
    assert all(len(line.split()) == 2 for line in done.out.splitlines())


def test_jsonl_has_all_labels(topics: Path, topics_client: TestClient, tmp_path: Path) -> None:
    # A row with a second text in the field text_pair is a pair.
    source, output = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    done = classify(topics, source, output)
    assert (done.code, done.err) == (0, "out.jsonl: 5 rows.\n")
    for row, written in zip(ROWS, read_rows(output), strict=True):
        assert written == row | {"labels": labels_of(topics_client, row)}
    piped = classify(topics, source, "-")
    assert piped.out == output.read_text()


@pytest.mark.parametrize(
    ("flags", "columns"),
    [([], ["label", "score"]), (["--top-k=2"], ["label", "score", "labels"])],
)
def test_csv_has_the_best_label(
    topics: Path, topics_client: TestClient, tmp_path: Path, flags: list[str], columns: list[str]
) -> None:
    # With --top-k a further column contains the labels as JSON.
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(f"id,text,text_pair\n1,{TEXT},{PAIR}\n2,paris,\n")
    done = classify(topics, source, output, "--field=text", *flags)
    assert done.err == "out.csv: 2 rows.\n"
    rows = read_csv(output)
    assert list(rows[0]) == ["id", "text", "text_pair", *columns]
    for row in rows:
        given = {"inputs": row["text"], "text_pair": row["text_pair"]}
        labels = labels_of(topics_client, given, **({"top_k": 2} if flags else {}))
        assert row["label"] == labels[0]["label"]
        assert float(row["score"]) == labels[0]["score"]
        if flags:
            assert json.loads(row["labels"]) == labels


def test_parquet_has_the_best_label_and_all(
    topics: Path, topics_client: TestClient, tmp_path: Path
) -> None:
    # The written Parquet file is also a valid input.
    rows = [{"text": row["inputs"], "other": row.get("text_pair") or PAIR} for row in ROWS]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.parquet"
    flags = ("--field=text", "--text-pair-column=other")
    assert classify(topics, source, output, *flags).code == 0
    table = pq.read_table(output)
    assert str(table.schema.field("labels").type) == (
        "list<element: struct<label: string, score: double>>"
    )
    for row, written in zip(rows, table.to_pylist(), strict=True):
        labels = labels_of(topics_client, {"inputs": row["text"], "text_pair": row["other"]})
        assert written == row | labels[0] | {"labels": labels}
    again = tmp_path / "again.jsonl"
    pq.write_table(table.drop_columns(["label", "score", "labels"]), output)
    assert classify(topics, output, again, *flags).code == 0
    assert [row["labels"] for row in read_rows(again)] == table["labels"].to_pylist()


def test_plain_text(topics: Path, topics_client: TestClient, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.csv"
    source.write_text(f"{TEXT}\nparis\n")
    assert classify(topics, source, output).code == 0
    rows = read_csv(output)
    best = [labels_of(topics_client, {"inputs": text})[0]["label"] for text in (TEXT, "paris")]
    assert [row["label"] for row in rows] == best


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_errors_of_rows(topics: Path, tmp_path: Path, ending: str) -> None:
    # An invalid row gets an error in place of its labels.
    bad: list[dict[str, Any]] = [
        {"inputs": "", "text_pair": PAIR},
        {"inputs": "dog " * 40},
        {"inputs": TEXT, "text_pair": 3},
        {"inputs": TEXT, "parameters": {"strategy": "joint"}},
        {"inputs": TEXT, "parameters": {"function_to_apply": "tanh"}},
    ]
    if ending == "parquet":  # a Parquet column has one type
        bad[2] = {"inputs": TEXT, "text_pair": "cup " * 30}
    source, output = tmp_path / "in.jsonl", tmp_path / f"out.{ending}"
    write_rows(source, [*bad, {"inputs": TEXT}])
    done = classify(topics, source, output, "--on-error=report")
    assert (done.code, done.err) == (0, f"out.{ending}: 6 rows, 5 with an error.\n")
    if ending == "jsonl":
        rows = read_rows(output)
    elif ending == "csv":
        rows = read_csv(output)
    else:
        rows = pq.read_table(output).to_pylist()
    too_long = "inputs must have at most 32 tokens, special tokens included (got 36)"
    long = too_long if ending == "parquet" else "text_pair must be a non-empty text (got"
    starts = [
        'inputs must be a non-empty text (got "").',
        "inputs must have at most 32 tokens, special tokens included (got 42); shorten it or set",
        long,
        'Unknown field "strategy" in parameters; allowed: top_k, function_to_apply, on_long_text.',
        'function_to_apply must be softmax or sigmoid or none (got "tanh").',
    ]
    for row, start in zip(rows, starts, strict=False):
        assert row["error"].startswith(start)
        assert not row.get("labels")
        assert not row.get("label")
    assert rows[-1].get("label") or rows[-1]["labels"]
    assert not rows[-1].get("error")
    stopped = classify(topics, source, tmp_path / "stopped.jsonl")
    assert stopped.code == 2
    assert stopped.err.startswith('in.jsonl, row 1: inputs must be a non-empty text (got "").')


def test_a_resumed_job_has_the_same_labels(
    topics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The job continues after an interruption, but not with another column of second texts.
    source = write_rows(tmp_path / "in.jsonl", numbered([TEXT, "paris", ""]))
    output = tmp_path / "out.csv"
    assert classify(topics, source, output).code == 2
    refused = fillmask(
        *("--task=classify", "--text-pair-column=id", "--input", source),
        *("--output", output, "--bundle", topics),
    )
    assert 'with text_pair_column "null" instead of "id". Run that job' in refused.err
    started: list[int] = []
    run = RowPipeline.run

    async def counted(self: RowPipeline, blocks: Any, write: Any) -> None:
        held = list(blocks)
        started.extend(block.first for block, _ in held)
        await run(self, iter(held), write)

    monkeypatch.setattr(RowPipeline, "run", counted)
    done = classify(topics, source, output)
    assert done.err.startswith("Continuing after row 2 of in.jsonl.\n")
    assert started == [2]


def test_labelled_texts_are_classified(topics: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("inputs,label\na,b\n")
    done = classify(topics, source, output)
    assert done.code == 0
    assert done.err.startswith(
        "in.csv has fields with the names of results, which therefore begin with fillmask_ "
        "(--output-prefix sets another beginning).\n"
    )
    [row] = read_csv(output)
    assert (row["label"], list(row)[2:]) == ("b", ["fillmask_label", "fillmask_score"])
    assert classify(topics, source, tmp_path / "out.jsonl").code == 0

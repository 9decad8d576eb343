"""Scores of one text and of files in every format, equal to the responses of /score."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from tests.service.cli.command_line import Done, fillmask, read_csv, read_rows, write_rows
from tests.service.tiny import Tiny

TEXT, PAIR = "the dog barked", "a cup of tea"
ROWS: list[dict[str, Any]] = [
    {"inputs": TEXT, "other": PAIR},
    {"inputs": "paris is", "other": "rome", "parameters": {"variant": "original"}},
    {"inputs": TEXT, "other": PAIR, "parameters": {"part": "text_pair", "span": [2, 5]}},
]


def score_of(client: TestClient, row: dict[str, Any]) -> Any:
    """Return the scores that /score returns for a row, without the rank."""
    inputs = {"text": row["inputs"], "text_pair": row.get("other")}
    body = {"inputs": inputs, "parameters": row.get("parameters")}
    response = client.post("/score", json=body)
    assert response.status_code == 200, response.text
    score = response.json()
    del score["rank"]
    return score


def score(bundle: Path, source: Path, output: object, *flags: object) -> Done:
    return fillmask(
        "--task=score", "--input", source, "--output", output, "--bundle", bundle, *flags
    )


@pytest.mark.parametrize("variant", ["within_word", "original"])
def test_json_equals_the_http_response(tiny: Tiny, client: TestClient, variant: str) -> None:
    done = fillmask("--task=score", TEXT, "--json", "--bundle", tiny.path, f"--variant={variant}")
    body = {"inputs": TEXT, "parameters": {"variant": variant}}
    assert done.out.encode() == client.post("/score", json=body).content + b"\n"


@pytest.mark.parametrize(
    ("flag", "parameters"),
    [("--prefix=the ", {"prefix": "the "}), ("--span=4:7", {"span": [4, 7]})],
)
def test_a_part_of_a_text(
    tiny: Tiny, client: TestClient, flag: str, parameters: dict[str, Any]
) -> None:
    done = fillmask("--task=score", TEXT, "--json", "--bundle", tiny.path, flag)
    body = {"inputs": TEXT, "parameters": parameters}
    assert done.out.encode() == client.post("/score", json=body).content + b"\n"


def test_parts_in_parquet(tiny: Tiny, client: TestClient, tmp_path: Path) -> None:
    # The parameters of a row override those of the command.
    rows: list[dict[str, Any]] = [
        {"inputs": TEXT, "parameters": {"prefix": "the dog"}},
        {"inputs": "the cat barked", "parameters": None},
    ]
    source = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist(rows), source)
    done = score(tiny.path, source, "-", "--prefix=the", "--variant=original")
    prefixes = ("the dog", "the")
    for row, prefix, written in zip(rows, prefixes, read_rows_of(done), strict=True):
        parameters = {"prefix": prefix, "variant": "original"}
        alone = score_of(client, row | {"parameters": parameters})
        assert written["score"] == alone
        assert len(alone["tokens"]) == (1 if prefix == "the dog" else 2)


def test_a_table_has_the_surprisal_of_each_token(tiny: Tiny, client: TestClient) -> None:
    summary, *lines = fillmask("--task=score", TEXT, "--bundle", tiny.path).out.splitlines()
    scored = client.post("/score", json={"inputs": TEXT}).json()
    assert summary.startswith(f"Log-probability {scored['log_prob']:.4f}, pseudo-perplexity ")
    for line, token in zip(lines, scored["tokens"], strict=True):
        surprisal, *_, name = line.split()
        assert (surprisal, name) == (f"{token['surprisal']:.2f}", token["token_str"])


def test_pairs_need_the_flag(both: Path, both_client: TestClient, tmp_path: Path) -> None:
    # Without --text-pair-column, the command ignores a field text_pair.
    row = {"inputs": TEXT, "text_pair": PAIR}
    source = write_rows(tmp_path / "in.jsonl", [row])
    [alone] = read_rows_of(score(both, source, "-"))
    assert alone == row | {"score": score_of(both_client, {"inputs": TEXT})}
    [pair] = read_rows_of(score(both, source, "-", "--text-pair-column=text_pair"))
    assert pair == row | {"score": score_of(both_client, {"inputs": TEXT, "other": PAIR})}
    assert {token["part"] for token in pair["score"]["tokens"]} == {"text", "text_pair"}


def test_every_format(both: Path, both_client: TestClient, tmp_path: Path) -> None:
    # JSONL has the score as an object, Parquet as columns, and CSV as columns without tokens.
    source = write_rows(tmp_path / "in.jsonl", ROWS)
    for ending in ("jsonl", "csv", "parquet"):
        done = score(both, source, tmp_path / f"out.{ending}", "--text-pair-column=other")
        assert done.err == f"out.{ending}: {len(ROWS)} rows.\n"
    scores = [score_of(both_client, row) for row in ROWS]
    written = read_rows(tmp_path / "out.jsonl")
    assert written == [row | {"score": one} for row, one in zip(ROWS, scores, strict=True)]
    cells = read_csv(tmp_path / "out.csv")
    assert list(cells[0])[-2:] == ["log_prob", "pseudo_perplexity"]
    assert [float(row["log_prob"]) for row in cells] == [one["log_prob"] for one in scores]
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [{name: row[name] for name in scores[0]} for row in table] == scores


def test_errors_of_rows(both: Path, tmp_path: Path) -> None:
    missing = 'The row has no field "other"; it has "inputs".'
    rows: list[dict[str, Any]] = [
        {"inputs": "a [MASK]", "other": PAIR},
        {"inputs": TEXT},
        {"inputs": TEXT, "other": None},
        {"inputs": TEXT, "other": PAIR, "parameters": {"top_k": 1}},
        {"inputs": TEXT, "other": PAIR},
    ]
    source = write_rows(tmp_path / "in.jsonl", rows)
    done = score(both, source, "-", "--text-pair-column=other", "--on-error=report")
    assert [row.get("error") for row in read_rows_of(done)] == [
        "inputs has a mask; remove [MASK] to score the text.",
        f"{missing} Select the field of the second texts with --text-pair-column.",
        "other must be a non-empty text (got null).",
        'Unknown field "top_k" in parameters; allowed: variant, prefix, span, part, targets.',
        None,
    ]


def read_rows_of(done: Done) -> list[dict[str, Any]]:
    """Return the rows that a command has written to standard output."""
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]

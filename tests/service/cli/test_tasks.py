"""Each task for one text and for files, with the answers of HTTP or Python."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from fillmask import FillMask
from tests.model.samples import VERSES
from tests.service.cli.command_line import Done, fillmask, read_rows, write_rows
from tests.service.sparse_bundles import write_sparse_bundle
from tests.service.tiny import Tiny

TEXT, PAIR = "the dog barked", "a cup of tea"
# rows whose own parameters override those of the command
ROWS: dict[str, list[dict[str, Any]]] = {
    "fill-mask": [
        {"inputs": "the [MASK] of"},
        {"inputs": "a [MASK] and [MASK]", "parameters": {"top_k": 2}, "id": 1.50},
        {"inputs": "[MASK] the [MASK]", "parameters": {"strategy": "joint"}},
        {"inputs": "a [MASK]", "parameters": {"granularity": "word"}, "é": "ü"},
        {"inputs": "a [MASK] is", "parameters": {"targets": ["dog", "walks"]}},
        {"inputs": "dog " * 40 + "[MASK]", "parameters": {"on_long_text": "window"}},
    ],
    "score": [
        {"inputs": TEXT},
        {"inputs": "the cat barked", "parameters": {"prefix": "the", "variant": "original"}},
        {"inputs": "paris", "parameters": {"span": [0, 5]}},
    ],
    "classify": [
        {"inputs": TEXT},
        {"inputs": TEXT, "text_pair": PAIR, "id": 1.50},
        {"inputs": "paris", "parameters": {"top_k": 1}},
        {"inputs": "rome", "text_pair": None, "parameters": {"function_to_apply": "none"}},
        {"inputs": "a [MASK] is a mask", "text_pair": ""},
    ],
}
FIELDS = {"fill-mask": "fills", "score": "score", "classify": "labels"}


def http(client: TestClient, task: str, row: dict[str, Any], **parameters: Any) -> Any:
    """Return the response of HTTP to a row, as the command writes it."""
    inputs = row["inputs"]
    if row.get("text_pair"):
        inputs = {"text": inputs, "text_pair": row["text_pair"]}
    body = {"inputs": inputs, "parameters": parameters | (row.get("parameters") or {})}
    response = client.post(f"/{task}", json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    if task == "score":
        del answer["rank"]
    return answer[0] if task == "classify" else answer


def run(task: str, bundle: Path, source: Path, output: object, *flags: object) -> Done:
    files = ("--input", source, "--output", output)
    return fillmask(f"--task={task}", *files, "--bundle", bundle, *flags)


@pytest.mark.parametrize("task", ROWS)
def test_files_have_the_answers_of_http(
    task: str, both: Path, both_client: TestClient, tmp_path: Path
) -> None:
    rows = ROWS[task]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    done = run(task, both, source, output)
    assert (done.code, done.out, done.err) == (0, "", f"out.jsonl: {len(rows)} rows.\n")
    answers = [http(both_client, task, row) for row in rows]
    assert read_rows(output) == [
        row | {FIELDS[task]: answer} for row, answer in zip(rows, answers, strict=True)
    ]
    assert run(task, both, source, "-").out == output.read_text()

    run(task, both, source, tmp_path / "out.csv")
    lines, cells = read_rows(tmp_path / "out.csv"), []
    for number, answer in enumerate(answers, 1):
        if task == "fill-mask":
            masks = answer if isinstance(answer[0], list) else [answer]
            cells += [
                {"row": number, "mask": mask, "rank": rank, **fill}
                for mask, fills in enumerate(masks, 1)
                for rank, fill in enumerate(fills, 1)
            ]
        elif task == "classify":
            cells.append(answer[0])
        else:
            cells.append({name: answer[name] for name in ("log_prob", "pseudo_perplexity")})
    for line, cell in zip(lines, cells, strict=True):
        found = {name: line[name] for name in cell}
        assert {n: c if isinstance(cell[n], str) else json.loads(c) for n, c in found.items()} == (
            cell
        )

    run(task, both, source, tmp_path / "out.parquet")
    for line, answer in zip(read_rows(tmp_path / "out.parquet"), answers, strict=True):
        if task == "fill-mask":
            masks = answer if isinstance(answer[0], list) else [answer]
            flat = [{"mask": n} | one for n, some in enumerate(masks, 1) for one in some]
            present = [{n: v for n, v in one.items() if v is not None} for one in line["fills"]]
            assert present == flat
        elif task == "classify":
            assert (line["label"], line["score"]) == (answer[0]["label"], answer[0]["score"])
            assert line["labels"] == answer
        else:
            tokens = [{n: v for n, v in t.items() if v is not None} for t in line["tokens"]]
            assert {**answer, "tokens": tokens} == answer
            assert line["log_prob"] == answer["log_prob"]


@pytest.mark.parametrize(
    ("task", "flags", "parameters"),
    [
        ("fill-mask", ["--top-k", 2], {"top_k": 2}),
        ("fill-mask", ["--target", "dog", "--target=walks"], {"targets": ["dog", "walks"]}),
        ("fill-mask", ["--strategy=joint"], {"strategy": "joint"}),
        ("score", ["--prefix=the "], {"prefix": "the "}),
        ("score", ["--span=4:7"], {"span": [4, 7]}),
        ("classify", ["--top-k=2", "--function-to-apply=sigmoid"], {"top_k": 2}),
    ],
)
def test_one_text_has_the_response_of_http(
    both: Path, both_client: TestClient, task: str, flags: list[Any], parameters: dict[str, Any]
) -> None:
    text = "[MASK] a [MASK]" if task == "fill-mask" else TEXT
    if task == "classify":
        parameters = parameters | {"function_to_apply": "sigmoid"}
    done = fillmask(text, f"--task={task}", "--json", "--bundle", both, *flags)
    answer = both_client.post(f"/{task}", json={"inputs": text, "parameters": parameters})
    assert (done.code, done.err) == (0, "")
    assert done.out.encode() == answer.content + b"\n"


def test_pairs_have_the_response_of_http(
    both: Path, both_client: TestClient, tmp_path: Path
) -> None:
    # Without a flag, only classify reads the field text_pair.
    row = {"inputs": "a [MASK]", "text_pair": PAIR}
    expected = http(both_client, "fill-mask", row)
    done = fillmask("a [MASK]", "--text-pair", PAIR, "--json", "--bundle", both)
    assert json.loads(done.out) == expected
    source = write_rows(tmp_path / "in.jsonl", [row])
    paired = run("fill-mask", both, source, "-", "--text-pair-column=text_pair")
    assert json.loads(paired.out)["fills"] == expected
    alone = json.loads(run("fill-mask", both, source, "-").out)
    assert alone["fills"] == http(both_client, "fill-mask", {"inputs": "a [MASK]"})


@pytest.mark.parametrize(
    ("flags", "columns"),
    [([], ["label", "score"]), (["--top-k=2"], ["label", "score", "labels"])],
)
def test_csv_has_all_labels_if_asked(
    both: Path, tmp_path: Path, flags: list[str], columns: list[str]
) -> None:
    # The columns of the input that have one of these names stay.
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("inputs,label\nparis,b\n")
    done = run("classify", both, source, output, "--output-prefix=my_", *flags)
    assert done.code == 0
    [row] = read_rows(output)
    assert (list(row), row["label"]) == (["inputs", "label", *(f"my_{n}" for n in columns)], "b")
    if flags:
        assert len(json.loads(row["my_labels"])) == 2


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_an_invalid_row_has_its_error(both: Path, tmp_path: Path, ending: str) -> None:
    rows: list[dict[str, Any]] = [
        {"inputs": "", "text_pair": PAIR},
        {"inputs": TEXT, "parameters": {"strategy": "joint"}},
        {"inputs": TEXT},
    ]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / f"out.{ending}"
    done = run("classify", both, source, output, "--on-error=report")
    assert (done.code, done.err) == (0, f"out.{ending}: 3 rows, 2 with an error.\n")
    first, second, last = read_rows(output)
    assert first["error"] == 'inputs must be a non-empty text (got "").'
    assert second["error"].startswith('Unknown field "strategy" in parameters; allowed: top_k, ')
    assert not any([first.get("label"), first.get("labels"), last.get("error")])
    assert last.get("label") or last["labels"]


@pytest.mark.parametrize("kind", ["text", "file", "stream"])
def test_a_bundle_without_the_task(tiny: Tiny, tmp_path: Path, kind: str) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", [{"inputs": "a"}]), tmp_path / "out.jsonl"
    given: list[object] = ["a"]
    if kind != "text":
        given = ["--input", source, "--output", output if kind == "file" else "-"]
    done = fillmask(*given, "--bundle", tiny.path, "--task=classify")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        (
            'The model "tiny" has only the task fill-mask; --task must be fill-mask or score '
            "(got classify).\n"
        ),
    )
    assert not output.exists()


def test_a_bundle_without_pairs(single: Path, tmp_path: Path) -> None:
    # With a flag for second texts, the command fails. Without it, only rows with pairs fail.
    message = (
        'The model "single" reads single texts; use a model that reads pairs, or remove the '
        "second text.\n"
    )
    source = write_rows(tmp_path / "in.jsonl", [{"inputs": "a", "text_pair": "b"}, {"inputs": "a"}])
    flags = ("--task=classify", "--bundle", single)
    assert fillmask("a", "--text-pair=b", *flags).err == message
    named = "--text-pair-column=text_pair"
    assert run("classify", single, source, tmp_path / "out.csv", named).err == message
    done = run("classify", single, source, "-", "--on-error=report")
    assert done.err == "in.jsonl: 2 rows, 1 with an error.\n"
    assert "inputs is a pair, but this model reads only single texts; remove text_pair." in done.out
    empty = fillmask("a", "--text-pair=", *flags)
    assert empty.err == "--text-pair is empty; write at least one word.\n"


def test_sparse_vectors_are_those_of_python(tmp_path: Path) -> None:
    bundle = write_sparse_bundle(tmp_path / "splade")
    rows: list[dict[str, Any]] = [
        {"inputs": VERSES[0]},
        {"inputs": VERSES[1], "parameters": {"top_n": 2}, "id": 7},
    ]
    with FillMask(bundle, threads=1) as model:
        vectors = model.embed_sparse(VERSES[:2], top_n=5, parameters=[None, {"top_n": 2}])
        expected = [vector.to_dict() for vector in vectors]
    source = write_rows(tmp_path / "in.jsonl", rows)
    for ending in ("jsonl", "csv", "parquet"):
        done = run("sparse", bundle, source, tmp_path / f"out.{ending}", "--top-n", 5)
        assert (done.code, done.out) == (0, ""), done.err
    written = read_rows(tmp_path / "out.jsonl")
    assert written == [row | {"vector": one} for row, one in zip(rows, expected, strict=True)]
    lines = read_rows(tmp_path / "out.csv")
    assert [{name: json.loads(line[name]) for name in expected[0]} for line in lines] == expected
    for line, vector in zip(read_rows(tmp_path / "out.parquet"), expected, strict=True):
        assert {**line, "values": 0} == {**line, **vector, "values": 0}
        assert line["values"] == pytest.approx(vector["values"])
    table = fillmask("--task=sparse", VERSES[0], "--bundle", bundle, "--top-n=6").out
    weights = [float(line.split()[0]) for line in table.splitlines()]
    assert (weights, len(weights)) == (sorted(weights, reverse=True), 6)
    flags = ("--task=sparse", VERSES[0], "--json", "--bundle", bundle)
    body = json.loads(fillmask(*flags, "--min-weight=0.5").out)
    assert min(one["value"] for one in body[0]) >= 0.5
    refused = fillmask(*flags, "--min-weight=x")
    assert 'min_weight must be a number of at least 0 (got "x")' in refused.err


def test_parquet_has_one_type_whatever_was_asked(tmp_path: Path, tiny: Tiny) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", []), tmp_path / "out.parquet"
    run("fill-mask", tiny.path, source, output)
    assert str(pq.read_schema(output).field("fills").type) == (
        "list<element: struct<mask: int32, score: double, token: int32, token_str: string, "
        "sequence: string, log_prob: double, target_score: double, tokens: list<element: int32>, "
        "token_strs: list<element: string>, window: list<element: int32>>>"
    )

"""Fills of files in every format and of resumed jobs, equal to the fills over HTTP."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.cli import whole_file
from fillmask.cli.formats.base import Block
from fillmask.cli.pipeline import RowPipeline
from fillmask.cli.resume.job import parts_directory
from fillmask.cli.resume.parts import PartFiles
from fillmask.settings import Settings
from tests.service.cli.command_line import (
    Done,
    dice,
    fillmask,
    numbered,
    random_texts,
    read_rows,
    write_rows,
)
from tests.service.tiny import Tiny

MIXED: list[dict[str, Any]] = [
    {"inputs": "the [MASK] of"},
    {"inputs": "a [MASK] and [MASK]", "parameters": {"top_k": 2}, "id": 1.50},
    {"inputs": "[MASK] the [MASK]", "parameters": {"strategy": "joint"}},
    {"inputs": "a [MASK]", "parameters": {"granularity": "word"}, "é": "ü"},
    {"inputs": "a [MASK] is", "parameters": {"targets": ["dog", "walks"]}},
    {"inputs": "dog " * 40 + "[MASK]", "parameters": {"on_long_text": "window"}},
]


@pytest.fixture(scope="module")
def unlimited(tiny: Tiny) -> Iterator[TestClient]:
    """Client of a service whose limits the rows do not reach."""
    with TestClient(create_app(Settings(bundle=tiny.path, max_passes=10_000))) as client:
        yield client


def fill(tiny: Tiny, source: Path, output: Path, *flags: object) -> Done:
    """Run the command on a file."""
    return fillmask("--input", source, "--output", output, "--bundle", tiny.path, *flags)


def answer(client: TestClient, row: dict[str, Any]) -> Any:
    """Return the HTTP response to a row."""
    body = {key: row[key] for key in ("inputs", "parameters") if key in row}
    response = client.post("/fill-mask", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def test_jsonl_equals_the_http_response(tiny: Tiny, unlimited: TestClient, tmp_path: Path) -> None:
    # Parameters of a row override the defaults.
    rows = MIXED + numbered(random_texts(300))
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    done = fill(tiny, source, output, "--top-k=4")
    assert (done.code, done.out) == (0, "")
    assert done.err == "out.jsonl: 306 rows.\n"
    for row, filled in zip(rows, read_rows(output), strict=True):
        asked = row | {"parameters": {"top_k": 4} | row.get("parameters", {})}
        assert filled == row | {"fills": answer(unlimited, asked)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_row_is_kept_to_the_byte(tiny: Tiny, tmp_path: Path) -> None:
    line = '{ "inputs" : "the caf\\u00e9 [MASK]", "n":1.0e2 }'
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(line)
    fill(tiny, source, output)
    assert output.read_text().startswith(line[:-1].rstrip() + ',"fills":[{"score":')


def test_csv_has_a_line_per_fill(tiny: Tiny, unlimited: TestClient, tmp_path: Path) -> None:
    # Each line repeats the row's cells and quotes their line breaks.
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(b'\xef\xbb\xbfid,text\r\n7,"the [MASK]\r\nof [MASK]"\r\n8,a [MASK]\r\n')
    assert fill(tiny, source, output, "--field=text", "--top-k=2").code == 0
    with output.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    masks = answer(unlimited, {"inputs": "the [MASK]\r\nof [MASK]", "parameters": {"top_k": 2}})
    masks.append(answer(unlimited, {"inputs": "a [MASK]", "parameters": {"top_k": 2}}))
    places = [(1, 1), (1, 2), (2, 1)]
    expected = [
        {"id": str(6 + row), "row": str(row), "mask": str(mask), "rank": str(rank)}
        | {"text": fill["sequence"]}
        | {key: str(fill[key]) for key in ("token", "token_str", "sequence")}
        for (row, mask), fills in zip(places, masks, strict=True)
        for rank, fill in enumerate(fills, 1)
    ]
    assert len(lines) == 6
    for line, wanted in zip(lines, expected, strict=True):
        wanted["text"] = line["text"]
        assert line | wanted == line
    assert [float(line["score"]) for line in lines] == [
        fill["score"] for fills in masks for fill in fills
    ]


def test_parquet_keeps_its_columns(tiny: Tiny, unlimited: TestClient, tmp_path: Path) -> None:
    # A column of the input may hold parameters.
    columns = {
        "inputs": pa.array([row["inputs"] for row in MIXED], pa.large_string()),
        "day": pa.array([18262] * len(MIXED), pa.date32()),
        "parameters": pa.array([row.get("parameters") for row in MIXED]),
    }
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table(columns), source, row_group_size=4)
    assert fill(tiny, source, output).code == 0
    table = pq.read_table(output)
    assert table.drop_columns("fills").equals(pq.read_table(source))
    for row, fills in zip(MIXED, table["fills"].to_pylist(), strict=True):
        masks = answer(unlimited, row)
        nested = masks if isinstance(masks[0], list) else [masks]
        flat = [(mask, one) for mask, some in enumerate(nested, 1) for one in some]
        assert [
            {key: value for key, value in fill.items() if value is not None} for fill in fills
        ] == [{"mask": mask} | one for mask, one in flat]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "txt"])
@pytest.mark.parametrize("other", ["ndjson", "csv", "parquet"])
def test_any_format_becomes_any_other(tiny: Tiny, tmp_path: Path, ending: str, other: str) -> None:
    texts = random_texts(20)
    source, output = tmp_path / f"in.{ending}", tmp_path / f"out.{other}"
    if ending == "parquet":
        pq.write_table(pa.table({"inputs": texts}), source)
    elif ending == "jsonl":
        write_rows(source, [{"inputs": text} for text in texts])
    else:
        source.write_text("inputs\n" * (ending == "csv") + "\n".join(texts) + "\n")
    assert fill(tiny, source, output, "--top-k=1").code == 0
    expected = tmp_path / "expected.jsonl"
    fill(tiny, write_rows(tmp_path / "same.jsonl", numbered(texts)), expected, "--top-k=1")
    assert tokens_of(output) == tokens_of(expected)


def tokens_of(output: Path) -> list[tuple[str, int, int]]:
    """Return the text, mask and token of each fill."""
    if output.suffix == ".csv":
        with output.open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream))
        return [(line["inputs"], int(line["mask"]), int(line["token"])) for line in lines]
    found = []
    rows = pq.read_table(output).to_pylist() if output.suffix == ".parquet" else read_rows(output)
    for row in rows:
        fills = row["fills"]
        if fills and isinstance(fills[0], list):
            fills = [one | {"mask": mask} for mask, some in enumerate(fills, 1) for one in some]
        found += [(row["inputs"], fill.get("mask", 1), fill["token"]) for fill in fills]
    return found


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_input_without_rows(tiny: Tiny, tmp_path: Path, ending: str) -> None:
    # The output is a valid file without rows.
    source, output = tmp_path / "in.txt", tmp_path / f"out.{ending}"
    source.touch()
    done = fill(tiny, source, output)
    assert (done.code, done.err) == (0, f"out.{ending}: 0 rows.\n")
    if ending == "jsonl":
        assert output.read_bytes() == b""
    elif ending == "csv":
        assert output.read_text() == ("inputs,row,mask,rank,score,token,token_str,sequence\n")
    else:
        assert pq.read_table(output).schema.names == ["inputs", "fills"]


def test_invalid_row_ends_the_command(tiny: Tiny, tmp_path: Path) -> None:
    # The message has the file and the row number. With --on-error report the command continues.
    rows = numbered(random_texts(30))
    rows[17] = {"id": 17, "inputs": "a dog"}
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    done = fill(tiny, source, output)
    assert (done.code, done.out) == (2, "")
    saved, error = done.err.splitlines()
    assert saved.startswith("17 of 30 rows are saved; run the command again to continue ")
    assert error.startswith("in.jsonl, row 18: inputs has no mask; write [MASK] in place of a word")
    assert "--on-error report" in error
    assert not output.exists()
    done = fill(tiny, source, output, "--on-error=report")
    assert done.code == 0
    assert done.err == (
        "Continuing after row 17 of in.jsonl.\nout.jsonl: 30 rows, 1 with an error.\n"
    )
    filled = read_rows(output)
    assert filled[17] == rows[17] | {
        "error": "inputs has no mask; write [MASK] in place of a word."
    }
    assert all("fills" in row for row in filled[:17] + filled[18:])


def test_invalid_rows_are_reported_in_order(tiny: Tiny, tmp_path: Path) -> None:
    # The output also has the errors of unreadable rows.
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(
        b'{"inputs": "a [MASK]"}\nno JSON\n{"inputs": null, "x": 1}\n{"inputs": "[MASK]", '
        b'"parameters": {"targets": ["\xc3\xa9"]}}\n{"inputs": "the [MASK]"}\n\xff\n'
    )
    assert fill(tiny, source, output, "--on-error=report").code == 0
    lines = read_rows(output)
    assert [list(line) for line in lines] == [
        ["inputs", "fills"],
        ["error"],
        ["inputs", "x", "error"],
        ["inputs", "parameters", "error"],
        ["inputs", "fills"],
        ["error"],
    ]
    assert lines[1]["error"] == (
        "The line is not valid JSON (expecting value at line 2, column 1); correct the syntax."
    )
    assert "vocabulary lacks" in lines[3]["error"]


def test_reported_errors_are_errors_without_the_flag(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A job that began with --on-error report can continue without the flag.
    rows = [{"inputs": "a dog"}, *numbered(random_texts(5))]
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(whole_file, "_join_parts", stop)
        assert fill(tiny, source, output, "--on-error=report").code == 1
    done = fill(tiny, source, output)
    assert done.code == 2
    assert "\nin.jsonl, row 1: inputs has no mask" in done.err


def stop(*_: object) -> NoReturn:
    """Raise the error of a broken disk."""
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize(("ending", "seed"), [("jsonl", 0), ("csv", 1), ("parquet", 2)])
def test_interrupted_job_writes_the_same_output(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, seed: int
) -> None:
    # The sizes of parts and batches and the times of interruptions do not change the output.
    rows = numbered(random_texts(120, seed))
    source = write_rows(tmp_path / "in.jsonl", rows)
    undisturbed, output = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    assert fill(tiny, source, undisturbed).code == 0
    rng = dice(seed)
    write = PartFiles.write
    left = 0

    def write_or_fail(self: PartFiles, block: Block, answers: Sequence[bytes]) -> None:
        nonlocal left
        left -= len(block)
        if left < 0:
            stop()
        write(self, block, answers)

    monkeypatch.setattr(PartFiles, "write", write_or_fail)
    codes: list[int] = []
    while not codes or codes[-1]:
        left = rng.randint(1, 70)
        monkeypatch.setattr("fillmask.cli.formats.base.BLOCK_ROWS", rng.randint(1, 40))
        monkeypatch.setattr("fillmask.cli.pipeline._LONG_ANSWERS_BYTES", rng.randint(1, 9000))
        defaults = {"rows": rng.randint(1, 50), "seconds": 10.0}
        monkeypatch.setattr(PartFiles.__init__, "__kwdefaults__", defaults)
        batch_tokens = rng.randint(1, 300)
        done = fill(tiny, source, output, f"--max-batch-tokens={batch_tokens}", "--threads=2")
        codes.append(done.code)
        assert done.code in {0, 1}
    assert len(codes) > 1
    assert output.read_bytes() == undisturbed.read_bytes()


def test_system_errors_can_be_retried(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The exit code differs from that of permanent errors.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(10)))
    output = tmp_path / "out.jsonl"

    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device", str(output))

    monkeypatch.setattr(PartFiles, "write", full)
    done = fill(tiny, source, output)
    assert (done.code, done.err) == (1, f"{output}: no space left on device.\n")
    monkeypatch.undo()
    assert fill(tiny, source, output).code == 0


def test_continuing_computes_nothing_twice(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A job without remaining rows loads no model.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(10)))
    output = tmp_path / "out.jsonl"
    monkeypatch.setattr(whole_file, "_join_parts", stop)
    assert fill(tiny, source, output).code == 1
    monkeypatch.undo()
    monkeypatch.setattr(whole_file, "load_model", stop)
    done = fill(tiny, source, output)
    assert (done.code, done.err) == (0, "out.jsonl: 10 rows.\n")


@pytest.mark.parametrize("change", ["input", "parameters", "field", "shard"])
def test_another_job_does_not_continue(tiny: Tiny, tmp_path: Path, change: str) -> None:
    # The message lists the differences between the jobs.
    # With --restart the command discards the saved answers.
    rows = [row | {"text": row["inputs"]} for row in numbered(random_texts(10))]
    rows[8]["inputs"] = rows[8]["text"] = "a dog"
    source, output = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert fill(tiny, source, output).code == 2  # and saves the rows before the invalid one
    if change == "input":
        rows[8]["inputs"] = "a [MASK]"
        write_rows(source, rows)
    flags = {"input": [], "parameters": ["--top-k=1"], "field": ["--field=text"]}
    more = flags.get(change, ["--shard=0/2"])
    done = fill(tiny, source, output, *more)
    assert done.code == 2
    assert "belongs to another job" in done.err
    assert ("another input" if change == "input" else f"with {change} ") in done.err
    assert not output.exists()
    done = fill(tiny, source, output, *more, "--restart", "--on-error=report")
    assert (done.code, "Going on" in done.err) == (0, False)


@pytest.mark.parametrize("failure", ["row", "model", "existing output"])
def test_a_run_that_saves_no_row_leaves_nothing(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    # The corrected command then starts as if it were the first one.
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_rows(source, [{"inputs": "a dog" if failure == "row" else "a [MASK]"}])
    if failure == "model":
        monkeypatch.setattr(whole_file, "load_model", stop)
    if failure == "existing output":
        begun = parts_directory(output)  # of a killed process, which has saved nothing
        begun.mkdir()
        (begun / "job.json").write_text('{"job": {}, "joined": false}')
        output.write_text("old")
    done = fill(tiny, source, output)
    assert done.code
    assert "saved" not in done.err
    assert not parts_directory(output).exists()
    monkeypatch.undo()
    output.unlink(missing_ok=True)
    write_rows(source, [{"inputs": "the [MASK]"}])
    assert fill(tiny, source, output, "--top-k=1").code == 0


def test_existing_output_is_not_replaced(tiny: Tiny, tmp_path: Path) -> None:
    # With --overwrite the old output stays until the new output is complete.
    source = write_rows(tmp_path / "in.jsonl", [{"inputs": "a dog"}])
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    done = fill(tiny, source, output)
    assert (done.code, done.err) == (
        2,
        f"{output} already exists; use --overwrite to replace it.\n",
    )
    assert fill(tiny, source, output, "--overwrite").code == 2
    assert output.read_text() == "old"
    done = fill(tiny, source, output, "--on-error=report")
    assert "already exists" in done.err
    done = fill(tiny, source, output, "--on-error=report", "--overwrite")
    assert (done.code, done.err) == (  # the output is there, but has no result
        2,
        (
            "out.jsonl: 1 row, 1 with an error.\nin.jsonl: every row has an error, which the "
            "output "
            "tells; correct the rows or the options.\n"
        ),
    )
    assert len(read_rows(output)) == 1


def test_changed_input_is_an_error(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(10)))
    output = tmp_path / "out.jsonl"
    join = whole_file._join_parts

    def touch_and_join(*arguments: Any) -> Any:
        with source.open("a") as stream:
            stream.write("\n")
        return join(*arguments)

    monkeypatch.setattr(whole_file, "_join_parts", touch_and_join)
    done = fill(tiny, source, output)
    assert done.code == 2
    assert done.err.endswith(
        f"{source} has changed since the start of the command; start again with --restart.\n"
    )
    assert not output.exists()


def test_targets_are_checked_before_the_first_row(tiny: Tiny, tmp_path: Path) -> None:
    # After the error a corrected command can use the same output.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(10)))
    done = fill(tiny, source, tmp_path / "out.jsonl", "--target=é", "--on-error=report")
    assert done.code == 2
    assert done.err == (
        'The target "é" has characters that the model\'s vocabulary lacks; remove the target.\n'
    )
    assert fill(tiny, source, tmp_path / "out.jsonl", "--target=dog").code == 0


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(("rows", "shards"), [(20, 3), (2, 4), (0, 2)])
def test_concatenated_shards_equal_the_whole(
    tiny: Tiny, tmp_path: Path, ending: str, rows: int, shards: int
) -> None:
    # Each CSV shard has its own header.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(rows)))
    whole = tmp_path / f"whole.{ending}"
    fill(tiny, source, whole, "--top-k=2")
    parts = [tmp_path / f"part-{index}.{ending}" for index in range(shards)]
    for index, part in enumerate(parts):
        done = fill(tiny, source, part, "--top-k=2", f"--shard={index}/{shards}")
        assert done.code == 0
    if ending == "jsonl":
        assert b"".join(part.read_bytes() for part in parts) == whole.read_bytes()
    elif ending == "csv":
        headers, lines = zip(
            *(part.read_text().split("\n", maxsplit=1) for part in parts), strict=True
        )
        assert set(headers) == {whole.read_text().split("\n", maxsplit=1)[0]}
        assert "".join((headers[0], "\n", *lines)) == whole.read_text()
    else:
        assert pa.concat_tables(map(pq.read_table, parts)).equals(pq.read_table(whole))


def test_a_model_that_fails_fails_the_command(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The exit code is 1, because the same command may succeed next time.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(600)))
    output = tmp_path / "out.jsonl"
    run = RowPipeline._answer
    calls = 0

    async def fail(self: Any, item: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 590:
            raise MemoryError("no more")
        return await run(self, item)

    monkeypatch.setattr(RowPipeline, "_answer", fail)
    with pytest.raises(MemoryError):
        fill(tiny, source, output)
    monkeypatch.undo()
    done = fill(tiny, source, output)
    assert done.err.startswith("Continuing after row 589 of in.jsonl.\n")
    assert [row["id"] for row in read_rows(output)] == list(range(600))
    assert json.loads(output.read_bytes().splitlines()[0])["fills"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_rows_with_the_names_of_results_are_kept(tiny: Tiny, tmp_path: Path, ending: str) -> None:
    # All shards have the same names, also those whose rows would need no other ones.
    rows = numbered(random_texts(4))
    rows[2] |= {"error": "before", "score": 3, "fills": 1}
    source = write_rows(tmp_path / "in.jsonl", rows)
    for shard in range(2):
        output = tmp_path / f"out-{shard}.{ending}"
        done = fill(tiny, source, output, "--top-k=1", f"--shard={shard}/2", "--on-error=report")
        assert (done.code, "begin with fillmask_ (--output-prefix" in done.err) == (0, True)
        if ending == "csv":
            with output.open(newline="") as stream:
                found: list[dict[str, Any]] = list(csv.DictReader(stream))
            assert {row["fillmask_score"] for row in found} - {""}
        else:
            found = read_rows(output) if ending == "jsonl" else pq.read_table(output).to_pylist()
            assert all(row["fillmask_fills"] for row in found)
        kept = [(row.get("error") or None, str(row.get("score") or "")) for row in found]
        assert ("before", "3") in kept if shard else set(kept) == {(None, "")}


def test_rows_of_standard_input_have_the_chosen_names(tiny: Tiny) -> None:
    # Nobody knows whether a later row has the name of a result.
    text = '{"inputs": "a [MASK]", "fills": 1}\n{"inputs": "a [MASK]"}\n'
    command = [sys.executable, "-m", "fillmask.cli", "--input=-", "--output=-", "--top-k=1"]
    for flags, code, names in (
        (["--output-prefix=my_"], 0, ["my_fills", "my_fills"]),
        (["--on-error=report"], 0, ["error", "fills"]),
    ):
        done = subprocess.run(
            [*command, "--bundle", str(tiny.path), *flags],
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code
        assert [list(json.loads(line))[-1] for line in done.stdout.splitlines()] == names


def test_an_output_written_in_the_meantime_stays(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The command keeps its answers, so that a second command with --overwrite only joins them.
    source, output = write_rows(tmp_path / "in.jsonl", MIXED[:2]), tmp_path / "out.jsonl"
    join = whole_file._join_parts

    def write_other(*arguments: Any) -> Any:
        output.write_text("mine")
        return join(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(whole_file, "_join_parts", write_other)
        done = fill(tiny, source, output)
    assert done.code == 2
    assert "already exists; use --overwrite" in done.err
    assert output.read_text() == "mine"
    assert fill(tiny, source, output, "--overwrite").code == 0
    assert len(read_rows(output)) == 2

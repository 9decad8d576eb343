"""Streams to standard output, of which a process writes each answer immediately."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.cli.command_line import (
    Done,
    fillmask,
    numbered,
    random_texts,
    write_rows,
)
from tests.service.cli.conftest import Pipe
from tests.service.tiny import Tiny

COMMAND = [sys.executable, "-m", "fillmask.cli"]
FLAGS = ["--input=-", "--output=-", "--bundle"]
ROW = b'{"inputs": "a [MASK]"}\n'


def test_invalid_rows_of_standard_input(tiny: Tiny, pipe: Pipe) -> None:
    # The output has the rows before the invalid row. With --on-error report the stream continues.
    content = ROW + b'{"inputs": "a dog"}\n' + ROW
    done = pipe(content, *FLAGS, tiny.path)
    assert (done.code, len(done.out.splitlines())) == (2, 1)
    assert done.err == (
        "standard input, row 2: inputs has no mask; write [MASK] in place of a word.\n"
    )
    done = pipe(content, *FLAGS, tiny.path, "--on-error=report")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert ["fills" in row for row in rows] == [True, False, True]
    assert (done.code, done.err) == (0, "standard input: 3 rows, 1 with an error.\n")
    assert pipe(b"", *FLAGS, tiny.path) == Done(0, "", "standard input: 0 rows.\n")


def test_rows_of_standard_input_have_the_chosen_names(tiny: Tiny, pipe: Pipe) -> None:
    # Nobody knows whether a later row has the name of a result.
    content = b'{"inputs": "a [MASK]", "fills": 1}\n' + ROW
    done = pipe(content, *FLAGS, tiny.path, "--output-prefix=my_")
    assert [list(json.loads(line))[-1] for line in done.out.splitlines()] == ["my_fills"] * 2
    done = pipe(content, *FLAGS, tiny.path, "--on-error=report")
    first, second = map(json.loads, done.out.splitlines())
    assert first == {
        "error": 'The row has the field "fills", which the output adds; set another '
        "--output-prefix."
    }
    assert list(second) == ["inputs", "fills"]


@pytest.mark.processes
def test_answers_do_not_wait_for_the_next_row(tiny: Tiny) -> None:
    # An error also appears before the end of the stream.
    command, pipe = [*COMMAND, *FLAGS, str(tiny.path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"n": number, "inputs": "a [MASK]"}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["n"] == number
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.wait(30) == 2


@pytest.mark.processes
def test_lines_of_text_do_not_wait_for_the_next_line(tiny: Tiny) -> None:
    # Without flags for files, a line is a text and not a JSON object. JSON is UTF-8, whatever the
    # encoding of standard output.
    command, pipe = [*COMMAND, "--json", "--top-k=1", "--bundle", str(tiny.path)], subprocess.PIPE
    variables = os.environ | {"PYTHONIOENCODING": "ascii"}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("the", "a é"):
            process.stdin.write(f"{word} [MASK]\n".encode())
            process.stdin.flush()
            [fill] = json.loads(process.stdout.readline())
            assert fill["sequence"].startswith(f"{word} ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.processes
def test_closed_pipe_ends_the_process_silently(tiny: Tiny, tmp_path: Path) -> None:
    # The exit code is not 0, because the output lacks rows.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(3000)))
    command = [*COMMAND, "--input", str(source), "--output=-", "--bundle", str(tiny.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == b'{"id": 0, '
        process.stdout.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == b""


def test_a_shard_to_standard_output(tiny: Tiny, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("id,inputs\n" + "".join(f"{n},a [MASK]\n" for n in range(9)))
    command = ("--input", source, "--output=-", "--bundle", tiny.path)
    done = fillmask(*command, "--shard=1/3")
    assert done.code == 0
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["3", "4", "5"]
    assert list(tmp_path.iterdir()) == [source]
    assert fillmask(*command, "--field=x").code == 2

"""Streams of a real process, which writes each answer immediately."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.cli.command_line import fillmask, numbered, random_texts, write_rows
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

COMMAND = [sys.executable, "-m", "fillmask.cli"]
FLAGS = ["--input", "-", "--output", "-", "--bundle"]


def fill(tiny: Tiny, content: bytes, *flags: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command with rows on standard input."""
    command = [*COMMAND, *FLAGS, str(tiny.path), *flags]
    return subprocess.run(command, input=content, capture_output=True, check=False, timeout=60)


def test_stream_equals_a_file(tiny: Tiny, tmp_path: Path) -> None:
    # Standard output has only the answers, because messages go to standard error.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(700)))
    fillmask("--input", source, "--output", tmp_path / "out.jsonl", "--bundle", tiny.path)
    done = fill(tiny, source.read_bytes())
    assert (done.returncode, done.stderr) == (0, b"standard input: 700 rows.\n")
    assert done.stdout == (tmp_path / "out.jsonl").read_bytes()


def test_no_rows(tiny: Tiny) -> None:
    done = fill(tiny, b"")
    assert (done.returncode, done.stdout) == (0, b"")


def test_invalid_row_ends_the_stream(tiny: Tiny) -> None:
    # The output has the rows before the invalid row.
    # With --on-error report the stream continues.
    content = b'{"inputs": "a [MASK]"}\n{"inputs": "a dog"}\n{"inputs": "the [MASK]"}\n'
    done = fill(tiny, content)
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == (
        b"standard input, row 2: inputs has no mask; write [MASK] in place of a word.\n"
    )
    done = fill(tiny, content, "--on-error=report")
    assert done.returncode == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert ["fills" in row for row in rows] == [True, False, True]
    assert done.stderr == b"standard input: 3 rows, 1 with an error.\n"


def test_trailing_blank_lines_are_ignored(tiny: Tiny) -> None:
    # A blank line before another row is an error.
    row = b'{"inputs": "a [MASK]"}\n'
    done = fill(tiny, row + b"\n \n\r\n")
    assert (done.returncode, done.stderr) == (0, b"standard input: 1 row.\n")
    done = fill(tiny, row + b"\n\n" + row + b"\n", "--on-error=report")
    assert (done.returncode, done.stderr) == (0, b"standard input: 4 rows, 2 with an error.\n")
    assert len(done.stdout.splitlines()) == 4


@pytest.mark.parametrize("bad", [False, True])
def test_answers_do_not_wait_for_the_next_row(tiny: Tiny, bad: bool) -> None:  # noqa: FBT001 - pytest passes it
    # An error also appears before the end of the stream.
    command, pipe = [*COMMAND, *FLAGS, str(tiny.path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"n": number, "inputs": "a [MASK]"}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["n"] == number
        if bad:
            process.stdin.write(b"{}\n")
            process.stdin.flush()
            assert process.wait(30) == 2
        else:
            process.stdin.close()
            assert process.wait(30) == 0


def test_lines_of_text_do_not_wait_for_the_next_line(tiny: Tiny) -> None:
    # Without flags for files, a line is a text and not a JSON object.
    command, pipe = [*COMMAND, "--json", "--top-k=1", "--bundle", str(tiny.path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("the", "a"):
            process.stdin.write(f"{word} [MASK]\n".encode())
            process.stdin.flush()
            [fill] = json.loads(process.stdout.readline())
            assert fill["sequence"].startswith(f"{word} ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM


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


@pytest.mark.parametrize("shard", [[], ["--shard=1/3"]])
def test_a_file_to_standard_output(tiny: Tiny, tmp_path: Path, shard: list[str]) -> None:
    # The input is a complete CSV file or one shard of it.
    source = tmp_path / "in.csv"
    source.write_text("id,inputs\n" + "".join(f"{n},a [MASK]\n" for n in range(9)))
    done = fillmask("--input", source, "--output=-", "--bundle", tiny.path, *shard)
    assert done.code == 0
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["id"] for row in rows] == [str(n) for n in (range(3, 6) if shard else range(9))]
    assert {len(row["fills"]) for row in rows} == {5}
    assert list(tmp_path.iterdir()) == [source]


def test_name_clashes_and_missing_fields_are_errors(tiny: Tiny, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("fills,inputs\n")
    done = fillmask("--input", source, "--output=-", "--bundle", tiny.path, "--output-prefix=")
    assert done.err.startswith('in.csv has the field "fills", which the output adds')
    done = fillmask("--input", source, "--output=-", "--bundle", tiny.path, "--field=x")
    assert done.code == 2

"""Interruptions, imports and exit codes of the command in a separate process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.cli.command_line import fillmask, numbered, random_texts, write_rows
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

# runs the command with a slow model and small parts
SLOW = """
import time
from fillmask.cli.formats import base
from fillmask.cli.__main__ import main
from fillmask.cli.job import Job
from fillmask.engine.runtime import Runtime
base.BLOCK_ROWS = 10
run = Runtime.run
def slow(self, batch):
    time.sleep(0.02)
    return run(self, batch)
Runtime.run = slow
Job.__init__.__kwdefaults__.update(save_rows=20)
main()
"""


def arguments(source: Path, output: Path, tiny: Tiny) -> list[str]:
    """Return the arguments of the command, with small batches."""
    files = ["--input", str(source), "--output", str(output)]
    return [*files, "--bundle", str(tiny.path), "--max-batch-tokens=40"]


def test_killed_or_told_to_stop_it_keeps_what_is_done(tiny: Tiny, tmp_path: Path) -> None:
    # The output appears only when it is complete, and is that of a run without interruption.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(300)))
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    fillmask(*arguments(source, whole, tiny))
    command = [sys.executable, "-c", SLOW, *arguments(source, output, tiny)]

    def done_rows() -> int:
        saved = tmp_path / "out.jsonl.parts"
        return max(saved.read_bytes().count(b"\n") - 1, 0) if saved.exists() else 0

    for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        before = done_rows()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while done_rows() == before:
                assert process.poll() is None
                time.sleep(0.001)
            process.send_signal(number)
            assert process.wait(10) == code
            assert process.stderr is not None
            said = process.stderr.read()
        if number != signal.SIGKILL:
            assert f"{done_rows()} of 300 rows are saved; run the command again to" in said
        assert not output.exists()
    done = done_rows()
    again = fillmask(*arguments(source, output, tiny))
    assert again.err == f"Continuing after row {done} of in.jsonl.\nout.jsonl: 300 rows.\n"
    assert output.read_bytes() == whole.read_bytes()


def test_it_serves_nothing_and_needs_no_torch(tiny: Tiny, tmp_path: Path) -> None:
    # The process imports no web framework, no metrics and no torch, and pyarrow only for Parquet.
    code = (
        "import sys\n"
        "from fillmask.cli.__main__ import execute\n"
        "for end in ('jsonl', 'parquet'):\n"
        "    code = execute([*sys.argv[1:], '--output', f'{sys.argv[2]}.{end}'])\n"
        "    print(code, *sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    source = write_rows(tmp_path / "in.jsonl", numbered(["a [MASK]"]))
    command = [sys.executable, "-c", code, "--input", str(source), "--bundle", str(tiny.path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line, needs_arrow in zip(printed.splitlines(), (False, True), strict=True):
        done, *modules = line.split()
        assert done == "0"
        unwanted = {"torch", "onnx", "transformers", "fastapi", "starlette", "uvicorn"}
        assert not {*unwanted, "prometheus_client"} & set(modules)
        assert ("pyarrow" in modules) == needs_arrow


def test_an_unexpected_error_ends_it_too(tiny: Tiny) -> None:
    # The process prints the traceback and exits with 1, even if standard input stays open.
    code = (
        "from fillmask.cli import work\n"
        "from fillmask.cli.__main__ import main\n"
        "def fail(*_): raise RuntimeError('never expected')\n"
        "work.RowPipeline._answer = fail\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, "--input=-", "--output=-", "--bundle", str(tiny.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b'{"inputs": "a [MASK]"}\n')
        process.stdin.flush()
        assert process.wait(30) == 1
        assert b"RuntimeError: never expected" in process.stderr.read()


def test_what_the_encoding_lacks_is_written_as_an_escape(tiny: Tiny) -> None:
    variables = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "fillmask.cli", "the é [MASK]", "--bundle", str(tiny.path)]
    done = subprocess.run(command, env=variables, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stderr == b"The text has 1 unknown tokens of 3, which the vocabulary lacks.\n"
    assert b"  the \\xe9 " in done.stdout

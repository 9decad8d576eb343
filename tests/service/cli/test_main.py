"""Interruptions, imports and exit codes of the command in a separate process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.cli.command_line import (
    dice,
    fillmask,
    numbered,
    random_texts,
    read_rows,
    write_rows,
)
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

# runs the command with a slow model and small parts
SLOW = """
import time
from fillmask.cli.formats import base
from fillmask.cli.__main__ import main
from fillmask.cli.resume.parts import PartFiles
from fillmask.engine.runtime import Runtime
base.BLOCK_ROWS = 10
run = Runtime.run
def slow(self, batch):
    time.sleep(0.02)
    return run(self, batch)
Runtime.run = slow
PartFiles.__init__.__kwdefaults__.update(rows=20)
main()
"""

# Runs the command in a process that ends before its n-th operation on the output and its parts,
# for each n, and again in a process that does not end early. Prints the latter's exit codes.
CRASHES = """
import os, shutil, sys
from pathlib import Path
from fillmask.cli.formats import base
from fillmask.cli.__main__ import main
from fillmask.cli.resume.parts import PartFiles

base.BLOCK_ROWS = 10
PartFiles.__init__.__kwdefaults__.update(rows=20)
source, bundle, whole, directory = map(Path, sys.argv[1:])
output = directory / whole.name

def run(crash_at):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = crash_at

    def count(event, arguments):
        nonlocal left
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir"):
            if str(arguments[0]).startswith(str(output)):
                left -= 1
                if left < 0:
                    os._exit(99)

    sys.addaudithook(count)
    sys.argv = ["fillmask", "--input", str(source), "--output", str(output)]
    sys.argv += ["--bundle", str(bundle)]
    main()

codes = []
while True:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    if run(len(codes)) != 99:
        break
    there = output.exists()
    codes.append(run(10**9))
    assert codes[-1] == 0 or there, codes
    assert output.read_bytes() == whole.read_bytes(), codes
    assert codes[-1] == 2 or list(directory.iterdir()) == [output], codes
print(*codes)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """JSONL file of texts to fill."""
    return write_rows(tmp_path / "in.jsonl", numbered(random_texts(300)))


def arguments(source: Path, output: Path, tiny: Tiny) -> list[str]:
    """Return the arguments of the command, with small batches."""
    files = ["--input", str(source), "--output", str(output)]
    return [*files, "--bundle", str(tiny.path), "--max-batch-tokens=40"]


def test_killed_at_any_moment_it_writes_the_same(tiny: Tiny, source: Path, tmp_path: Path) -> None:
    # The test sends SIGKILL repeatedly. The output appears only when it is complete.
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    assert fillmask(*arguments(source, whole, tiny)).code == 0
    rng = dice("kills")
    command = [sys.executable, "-c", SLOW, *arguments(source, output, tiny)]
    parts = tmp_path / "out.jsonl.parts"
    kills = whole_parts = 0
    while whole_parts < 5:
        enough = whole_parts + rng.randint(0, 2)
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            while len(list(parts.glob("*-*.jsonl"))) < enough:
                assert process.poll() is None
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.05))
            assert process.poll() is None
            process.kill()
        kills += 1
        whole_parts = len(list(parts.glob("*-*.jsonl")))
        assert not output.exists()
    assert fillmask(*arguments(source, output, tiny)).err.startswith("Continuing after row ")
    assert kills > 1
    assert output.read_bytes() == whole.read_bytes()
    assert [row["id"] for row in read_rows(output)] == list(range(300))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process is copied for each crash")
def test_crashed_before_any_step_it_goes_on(tiny: Tiny, tmp_path: Path) -> None:
    # The test repeats the job with a crash before each operation on the output or its parts.
    # A job is complete when the output has its final name and the parts are deleted. The same
    # command is then a new job, which must not replace the output.
    source = write_rows(tmp_path / "in.jsonl", numbered(random_texts(25)))
    whole = tmp_path / "out.jsonl"
    assert fillmask(*arguments(source, whole, tiny)).code == 0
    paths = map(str, (source, tiny.path, whole, tmp_path / "again"))
    command = [sys.executable, "-c", CRASHES, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    codes = [int(code) for code in done.stdout.split()]
    assert len(codes) > 15
    assert set(codes[:-2]) == {0}
    assert codes[-2:] == [2, 2]  # the lock and the directory


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_told_to_stop_it_keeps_what_is_done(
    tiny: Tiny, source: Path, tmp_path: Path, number: int, code: int
) -> None:
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    fillmask(*arguments(source, whole, tiny))
    parts = tmp_path / "out.jsonl.parts"
    command = [sys.executable, "-c", SLOW, *arguments(source, output, tiny)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not list(parts.glob("*-*.jsonl")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(10) == code
        assert process.stderr is not None
        said = process.stderr.read()
    done = max(int(path.stem.partition("-")[2]) for path in parts.glob("*-*.jsonl"))
    assert said.startswith(f"{done} of 300 rows are saved; run the command again to continue ")
    again = fillmask(*arguments(source, output, tiny))
    assert again.err == (f"Continuing after row {done} of in.jsonl.\nout.jsonl: 300 rows.\n")
    assert output.read_bytes() == whole.read_bytes()


def test_it_serves_nothing_and_needs_no_torch(tiny: Tiny, tmp_path: Path) -> None:
    # The process imports no web framework, no metrics and no torch, and pyarrow only for Parquet.
    code = (
        "import sys\n"
        "from fillmask.cli.__main__ import execute\n"
        "code = execute(sys.argv[1:])\n"
        "print(code, *sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    source = write_rows(tmp_path / "in.jsonl", numbered(["a [MASK]"]))
    for output in ("out.jsonl", "out.parquet"):
        command = [sys.executable, "-c", code, *arguments(source, tmp_path / output, tiny)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        done, *modules = printed.split()
        assert done == "0"
        unwanted = {"torch", "onnx", "transformers", "fastapi", "starlette", "uvicorn"}
        unwanted |= {"prometheus_client"}
        assert not unwanted & set(modules)
        assert ("pyarrow" in modules) == output.endswith("parquet")


def test_an_unexpected_error_ends_it_too(tiny: Tiny) -> None:
    # The process prints the traceback and exits with 1, even if standard input stays open.
    code = (
        "from fillmask.cli import stream\n"
        "from fillmask.cli.__main__ import main\n"
        "def fail(*_): raise RuntimeError('never expected')\n"
        "stream.RowPipeline._answer = fail\n"
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


def test_answers_as_json_are_utf8_whatever_the_encoding(tiny: Tiny) -> None:
    # JSON is always UTF-8, even if standard output has another encoding.
    variables = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "fillmask.cli", "the é [MASK]", "--json"]
    command += ["--bundle", str(tiny.path), "--top-k=1"]
    done = subprocess.run(command, env=variables, capture_output=True, check=True)
    assert json.loads(done.stdout)[0]["sequence"].startswith("the é ")

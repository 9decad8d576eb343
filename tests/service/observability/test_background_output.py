"""Output that nobody reads, or that somebody reads again."""

import json
import os
import signal
import threading
import time

import httpx
import pytest

from tests.chaos.process import free_port
from tests.service.scrape import samples, value
from tests.service.server_process import run_process, start_process
from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes

START = """
import logging, os, sys
from fillmask.observability.background_output import MAX_QUEUED_BYTES, in_background
from fillmask.observability.metrics import LOG_LINES_DROPPED
reader, writer = os.pipe()
output = in_background(open(writer, "w", closefd=False))
logging.basicConfig(stream=output, format="%(message)s")
def dropped():
    return next(one.value for one in LOG_LINES_DROPPED.collect()[0].samples)
"""
CASES = {
    "nobody reads": """
for number in range(20_000):
    print("x" * 99, file=output)
assert 20_000 - MAX_QUEUED_BYTES // 100 - 700 < dropped() < 20_000, dropped()
""",
    "nobody reads a terminal": """
_, terminal = os.openpty()
output = in_background(open(terminal, "w", closefd=False))
assert output.isatty()
for _ in range(20_000):
    print("x" * 99, file=output)
""",
    "the reader is gone": """
import time
os.close(reader)
for number in range(3):
    print("a line", file=output)
    while dropped() <= number:
        time.sleep(0.01)
""",
    "the pipe refuses to wait, and the order stays": """
os.set_blocking(writer, False)
lines = "".join(f"{number}\\n" for number in range(50_000))
for line in lines.splitlines(keepends=True):
    output.write(line)
read = b""
while len(read) < len(lines):
    read += os.read(reader, 1000)
assert read == lines.encode()
""",
    "a line is longer than a pipe": """
output.write("x" * 200_000 + "\\n")
output.write("y" * MAX_QUEUED_BYTES + "\\n")
output.write("z\\n")
read = b""
while not read.count(b"\\n") == 3:
    read += os.read(reader, 1000)
told = b"lines lost, because nobody read the log in time: 1"
assert sorted(read.split()) == sorted([b"x" * 200_000, b"z", *told.split()])
assert dropped() == 1
""",
    "a character that the encoding lacks": """
output = in_background(open(writer, "w", encoding="ascii", closefd=False))
print("é", file=output)
assert os.read(reader, 100) == b"\\\\xe9\\n"
""",
    "a forked process": """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, since 3.12
if os.fork() == 0:
    print("child", file=output)
    sys.exit()
assert os.wait()[1] == 0
assert os.read(reader, 100) == b"child\\n"
""",
    "the file is closed": "print('lost', file=in_background(None), flush=True)",
    "the end of the process": """
last = in_background(open(1, "w", closefd=False))
last.write("end\\n")
""",
}


@pytest.mark.parametrize("case", CASES)
def test_output_in_the_background(case: str) -> None:
    done = run_process(START + CASES[case])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "end\n" * (case == "the end of the process")


# the service, which gets SIGTERM when it listens
ENDING = """
import os, signal, socket, sys, threading, time
{}
def end():
    while socket.socket().connect_ex(("127.0.0.1", int(sys.argv[1].partition("=")[2]))):
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end).start()
from fillmask.__main__ import main
sys.exit(main())
"""
OUTPUTS = {
    "the reader of standard output is gone": "r, w = os.pipe(); os.close(r); os.dup2(w, 1)",
    "standard error is closed": "os.close(2); sys.stderr = None",
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_service_ends_without_its_outputs(output: str, tiny: Tiny) -> None:
    flags = (f"--port={free_port()}", f"--bundle={tiny.path}", "--drain-delay-s=0")
    assert run_process(ENDING.format(OUTPUTS[output]), *flags).returncode == 0


# The service, whose model fails after SIGUSR1 and whose queue of lines is short. Like native code,
# it prints to the descriptor.
FAILING = """
import contextlib, os, signal, sys
from fillmask.engine.runtime import Runtime
from fillmask.observability import background_output
background_output.MAX_QUEUED_BYTES = 2**16
run = Runtime.run
failing = []
def run_or_fail(self, batch):
    if not failing:
        return run(self, batch)
    with contextlib.suppress(BlockingIOError):
        os.write(2, b"native\\n")
    raise ValueError
Runtime.run = run_or_fail
signal.signal(signal.SIGUSR1, lambda *_: failing.append(True))
from fillmask.__main__ import main
sys.exit(main())
"""
REQUESTS = 150


def test_requests_while_nobody_reads_the_log(tiny: Tiny) -> None:
    # Two of three requests fail. Nobody reads their lines, of which the queue takes a part.
    reader, writer = os.pipe()
    flags = (f"--bundle={tiny.path}", "--access-log=all", "--drain-delay-s=0")
    with (
        os.fdopen(writer, "w") as errors,
        start_process(*flags, code=FAILING, errors=errors) as (process, url),
        httpx.Client(base_url=url, timeout=10) as client,
    ):

        def ask(number: int) -> int:
            body = {"inputs": ["[MASK]", "no mask", "[MASK]"][number % 3]}
            headers = {"X-Request-ID": str(number)}
            return client.post("/fill-mask", json=body, headers=headers).status_code

        def lost() -> float:
            return value(samples(client.get("/metrics").text), "fillmask_log_lines_dropped_total")

        assert ask(0) == 200
        process.send_signal(signal.SIGUSR1)
        statuses = []
        for number in range(1, REQUESTS):
            statuses.append(ask(number))
            assert client.get("/health/live").status_code == 200
        assert statuses == [422, 500, 500] * (REQUESTS // 3 - 1) + [422, 500]
        assert lost() > REQUESTS / 2
        read = bytearray()

        def read_all() -> None:
            while data := os.read(reader, 2**16):
                read.extend(data)

        thread = threading.Thread(target=read_all)
        thread.start()
        before = lost()
        while b"lost" not in read:
            time.sleep(0.01)
        assert ask(REQUESTS) == 500
        process.terminate()
        assert process.wait(20) == 0
        errors.close()
        thread.join()
        os.close(reader)
    # native code may print within a line that is longer than one write
    lines = [json.loads(line) for line in read.replace(b"native\n", b"").splitlines()]
    [told] = [line["message"] for line in lines if "lost" in line["message"]]
    count = int(told.split()[-1])
    assert count >= before
    # one for each text, check of health and scrape, and another for each failed text
    logged = (REQUESTS + 1) + (REQUESTS - 1) + 2 + 2 * REQUESTS // 3
    assert count + len(lines) - 1 == logged
    numbers = [int(line["request_id"]) for line in lines if line.get("route") == "/fill-mask"]
    assert numbers == sorted(numbers)
    assert numbers[-1] == REQUESTS

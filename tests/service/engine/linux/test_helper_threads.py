"""Number of helper threads for each run, and the end of the helper threads."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.linux import helper_threads
from fillmask.engine.linux.helper_threads import HelperThreads
from fillmask.engine.runtime import Runtime
from tests.service.engine.test_runtime import random_pass
from tests.service.fake_runtime import text
from tests.service.put_bundle import until
from tests.service.server_process import run_process
from tests.service.tiny import Tiny


class Pool:
    """Pool of threads that counts the functions in progress."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads)
        self.busy = 0

    def call(self, function: Callable[..., None]) -> None:
        self._threads.submit(self._count, function)

    def _count(self, function: Callable[..., None]) -> None:
        self.busy += 1
        function([], None, "ended")
        self.busy -= 1

    def close(self) -> None:
        self._threads.shutdown()


@pytest.fixture(autouse=True)
def active_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the runs of earlier tests."""
    monkeypatch.setattr(helper_threads, "_ACTIVE", helper_threads._ActiveRuns())


@pytest.fixture
def pool() -> Iterator[Pool]:
    created = Pool(3)
    yield created
    created.close()


def test_simultaneous_runs_share_the_threads(pool: Pool) -> None:
    # Each run after the first one, of any session, keeps one of three pool threads busy.
    with (
        closing(HelperThreads(pool.call, 1)) as other,
        closing(HelperThreads(pool.call, 3)) as helpers,
    ):
        assert other.start_run() == 2
        assert [helpers.start_run() for _ in range(5)] == [3, 2, 1, 1, 1]
        until(lambda: pool.busy == 3)
    assert pool.busy == 0


def test_helpers_stay_away_for_a_while(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    # After two simultaneous runs, a single run has one helper fewer until RECENT_S has passed.
    now_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: now_s, sleep=time.sleep)
    monkeypatch.setattr(helper_threads, "time", clock)
    with closing(HelperThreads(pool.call, 3)) as helpers:
        assert [helpers.start_run(), helpers.start_run()] == [4, 3]
        helpers.end_run()
        helpers.end_run()
        assert helpers.start_run() == 3
        helpers.end_run()
        until(lambda: pool.busy == 1)
        now_s = helper_threads.RECENT_S + 0.01
        assert helpers.start_run() == 4
        until(lambda: pool.busy == 0)
        helpers.end_run()


def test_pool_threads_end_with_their_owner(pool: Pool) -> None:
    helpers = HelperThreads(pool.call, 3)
    helpers.start_run()
    helpers.start_run()
    until(lambda: pool.busy == 1)
    del helpers
    until(lambda: pool.busy == 0)


def test_close_frees_threads_that_start_to_wait_later() -> None:
    # The pool calls the function only after `close` has begun.
    calls: list[Callable[..., None]] = []
    helpers = HelperThreads(calls.append, 2)
    helpers.start_run()
    helpers.start_run()
    closing = threading.Thread(target=helpers.close)
    closing.start()
    time.sleep(0.05)
    assert closing.is_alive()
    for call in calls:
        call([], None, "ended")
    closing.join(5)
    assert not closing.is_alive()


def test_any_number_of_helpers_returns_the_same_bits(tiny: Tiny) -> None:
    rng = np.random.default_rng(0)
    batch = Batch.pack([random_pass(rng) for _ in range(5)])
    expected = Runtime(tiny.path / "model.onnx").run(batch)
    threads = 4
    runtime = Runtime(tiny.path / "model.onnx", threads)
    for others in (0, 3, 1, 4, 0):
        helper_threads._ACTIVE = helper_threads._ActiveRuns()
        helper_threads._ACTIVE.runs = others
        found = runtime.run(batch)
        assert found.threads == max(1, threads - others)
        np.testing.assert_array_equal(found.top_ids, expected.top_ids)
        np.testing.assert_array_equal(found.top_log_probs, expected.top_log_probs)
    runtime.close()


def test_a_failed_run_gives_its_threads_back(tiny: Tiny) -> None:
    # Otherwise all later runs would stay on their calling threads.
    with closing(Runtime(tiny.path / "model.onnx", 2)) as runtime:
        with pytest.raises(Exception, match="indices"):
            runtime.run(Batch.pack([text(10**6)]))
        assert runtime.run(Batch.pack([text(1)])).threads == 2


EXIT = """
import sys, threading
from pathlib import Path
import numpy as np
from fillmask.engine.linux import helper_threads
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime

runtime = Runtime(Path(sys.argv[1]), 3)
helper_threads._ACTIVE.runs = 2
one = ModelPass(np.array([1, 2]), np.array([1]), 1, np.zeros((1, 0), dtype=np.int64))
print(runtime.run(Batch.pack([one])).threads)
"""


@pytest.mark.processes
def test_a_process_exits_without_close(tiny: Tiny) -> None:
    # Pool threads that still wait must not keep the process alive.
    done = run_process(EXIT, str(tiny.path / "model.onnx"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")

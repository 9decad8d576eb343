"""Bugs that the simulation must find, and the command that times how long each one hides.

    python -m tests.simulation.bugs [WORD ...]

A bug replaces attributes of the service, whatever its source lines look like. Those named "known"
are the mistakes of earlier releases.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from fillmask.concurrency import UseCounter
from fillmask.engine import admission
from fillmask.engine.admission import Admission, Throughput
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import PassOutputs
from fillmask.engine.request_queue import LaneQueue, PendingRequest
from fillmask.middleware.cancellation import DeadlineMiddleware
from fillmask.middleware.transfer import Claim
from tests.simulation.seeds import first_seed, run_seeds

LIMIT_S = 60.0
# what the bugs replace
_accept, _next_batch, _timeout_ms = (
    Admission.accept,
    LaneQueue.next_batch,
    DeadlineMiddleware._timeout_ms,
)
_compute, _deliver, _fail, _wake = Batcher._compute, Batcher._deliver, Batcher._fail, Batcher._wake


def _release_twice(self: Batcher, batch: Any, error: BaseException) -> None:
    _fail(self, batch, error)
    with self._lock:
        self._release_tokens(batch)


def _wake_if_all_sleep(self: Batcher, workers: int) -> None:
    if self._closing or len(self._idle) == len(self._workers):
        _wake(self, workers)


def _discard_without_release(self: Batcher, request: PendingRequest) -> None:
    with self._lock:
        self._queue.remove(lambda queued: queued.request is request)


def _swap_two_results(self: Batcher, batch: Any, results: Any) -> None:
    _deliver(self, batch, results[::-1] if len(batch) == 3 else results)


def _fail_all(self: Batcher, queued: Any) -> Any:
    results = _compute(self, queued)
    failed = [one for one in results if isinstance(one, Exception)]
    return failed[:1] * len(results) if failed else results


def _set_late_result(self: PendingRequest, index: int, result: PassOutputs | Exception) -> None:
    if isinstance(result, Exception):
        self.future.set_exception(result)
        return
    self._results[index] = result
    if len(self._results) == self._count:
        self.future.set_result([self._results[i] for i in range(self._count)])


def _forget_the_first_part(self: Admission, tokens: int, *, bulk: bool, parts: Any = None) -> None:
    _accept(self, tokens, bulk=bulk, parts=parts)
    if parts is not None:
        parts.admitted = False


def _never_bulk(self: LaneQueue[Any], budget_tokens: int, _: object = None) -> list[Any]:
    self._bulk_credit = 0.0 if self._interactive else 1.0
    return _next_batch(self, budget_tokens, lambda: 0.0)


def _a_second_late(self: DeadlineMiddleware, headers: Any) -> int:
    return _timeout_ms(self, headers) + 1000


def _keep_large_claims(self: Claim, *_: object) -> None:
    self._budget.held_bytes -= min(self._counted_bytes, 2**16)


async def _do_nothing(_: object) -> None:
    """Stand for a method that ends at once."""


# name -> owner, attribute and replacement of each edit
BUGS: dict[str, Sequence[tuple[Any, str, Any]]] = {
    "known: an estimate never recovers from a stall": [
        (admission, "_MAX_SLOWDOWN", math.inf),
        (Throughput, "tokens_per_s", property(lambda self: self._large.tokens_per_s or None)),
    ],
    "known: the tokens of a failed worker are released twice": [(Batcher, "_fail", _release_twice)],
    "known: the parts of a request reject each other": [
        (Admission, "accept", _forget_the_first_part)
    ],
    "a wake-up is lost": [(Batcher, "_wake", _wake_if_all_sleep)],
    "a cancelled request keeps its tokens": [(Batcher, "_discard", _discard_without_release)],
    "passes swap their results": [(Batcher, "_deliver", _swap_two_results)],
    "one bad pass fails its whole batch": [(Batcher, "_compute", _fail_all)],
    "a late result meets a cancelled request": [(PendingRequest, "set_result", _set_late_result)],
    "the bulk lane never gets a turn": [(LaneQueue, "next_batch", _never_bulk)],
    "a deadline is a second late": [(DeadlineMiddleware, "_timeout_ms", _a_second_late)],
    "a large request keeps some of its memory": [(Claim, "__exit__", _keep_large_claims)],
    "an old model closes while it is in use": [(UseCounter, "wait_until_unused", _do_nothing)],
}


def put_in(name: str) -> None:
    """Put a bug into the service of this process."""
    for owner, attribute, replacement in BUGS[name]:
        setattr(owner, attribute, replacement)


def find(name: str) -> str:
    """Return the first violation that the seeds of a minute find, or "" without one."""
    outcomes = run_seeds(first_seed(), None, LIMIT_S, prepare=partial(put_in, name))
    return next((one.violation for one in outcomes if one.violation is not None), "")


def main() -> int:
    """Look for each bug, or for those whose name contains an argument."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.bugs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="*", help="words of the names of the bugs")
    words = parser.parse_args().words
    names = [name for name in BUGS if not words or any(word in name for word in words)]
    missed = 0
    for name in names:
        begun_s = time.monotonic()
        violation = find(name)
        missed += not violation
        result = f"{time.monotonic() - begun_s:5.1f} s  {name}: {violation or 'MISSED'}"
        print(result.splitlines()[0][:200], flush=True)
    print(f"found {len(names) - missed} of {len(names)} bugs")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

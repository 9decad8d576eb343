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

from fillmask.engine import admission
from fillmask.engine.admission import Admission, Throughput
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import PassOutputs
from fillmask.engine.request_queue import PendingRequest
from fillmask.middleware.cancellation import DeadlineMiddleware
from fillmask.middleware.transfer import Claim
from fillmask.models.served_model import ServedModel, UseCounter
from fillmask.observability.health import Health
from tests.simulation.seeds import run_seeds

LIMIT_S = 60.0
# what the bugs replace
_accept, _timeout_ms = Admission.accept, DeadlineMiddleware._timeout_ms
_deliver, _wake = Batcher._deliver, Batcher._wake


def _wake_one_at_the_end(self: Batcher, workers: int) -> None:
    _wake(self, 1 if self._closing else workers)


def _discard_without_release(self: Batcher, request: PendingRequest) -> None:
    with self._lock:
        self._queue.remove(lambda queued: queued.request is request)


def _release_to_interactive(self: Batcher, passes: Any) -> None:
    for queued in passes:
        self._admission.release(queued.model_pass.tokens, bulk=False, parts=queued.parts)


def _swap_two_results(self: Batcher, batch: Any, results: Any) -> None:
    _deliver(self, batch, results[::-1] if len(batch) == 3 else results)


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


def _a_second_late(self: DeadlineMiddleware, headers: Any) -> int:
    return _timeout_ms(self, headers) + 1000


def _keep_large_claims(self: Claim, *_: object) -> None:
    self._budget.held_bytes -= min(self._counted_bytes, 2**16)


def _keep_failed_uses(self: UseCounter, kind: object, *_: object) -> None:
    self._count -= kind is None
    if not self._count and self._unused is not None and not self._unused.done():
        self._unused.set_result(None)


async def _do_nothing(_: object) -> None:
    """Stand for a method that ends at once."""


# name -> owner, attribute and replacement of each edit
BUGS: dict[str, Sequence[tuple[Any, str, Any]]] = {
    "known: an estimate never recovers from a stall": [
        (admission, "_MAX_SLOWDOWN", math.inf),
        (Throughput, "tokens_per_s", property(lambda self: self._large.tokens_per_s or None)),
    ],
    "known: the parts of a request reject each other": [
        (Admission, "accept", _forget_the_first_part)
    ],
    "closing wakes only one worker": [(Batcher, "_wake", _wake_one_at_the_end)],
    "a cancelled request keeps its tokens": [(Batcher, "_discard", _discard_without_release)],
    "tokens return to the wrong lane": [(Batcher, "_release_tokens", _release_to_interactive)],
    "passes swap their results": [(Batcher, "_deliver", _swap_two_results)],
    "a late result meets a cancelled request": [(PendingRequest, "set_result", _set_late_result)],
    "a deadline is a second late": [(DeadlineMiddleware, "_timeout_ms", _a_second_late)],
    "a large request keeps some of its memory": [(Claim, "__exit__", _keep_large_claims)],
    "a failed request keeps its model in use": [(UseCounter, "__exit__", _keep_failed_uses)],
    "an old model stays": [(ServedModel, "retire", _do_nothing)],
    "a failure ends the process like a stop": [(Health, "fail", Health.stop)],
}


def put_in(name: str) -> None:
    """Put a bug into the service of this process."""
    for owner, attribute, replacement in BUGS[name]:
        setattr(owner, attribute, replacement)


def find(name: str) -> str:
    """Return the first violation that the seeds of a minute find, or "" without one."""
    outcomes = run_seeds(LIMIT_S, prepare=partial(put_in, name))
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

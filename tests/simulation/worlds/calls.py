"""Calls of a batcher, whose every possible end is checked."""

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass, PassOutputs, no_targets
from fillmask.errors import InvalidRequestError, NotReadyError, OverloadedError
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.runtime import (
    BAD_ID,
    WorkerDeathError,
    answer_key,
    log_probs_of,
)
from tests.simulation.worlds.faults import MAX_STALL_S, Faults

# one in this number of requests has a pass on which the graph fails
_BAD_EVERY = 211
_TOP_K, _MASK = 2, 1
_LATE_S = 1.0


@dataclass
class Service:
    """A batcher, and what its callers may expect of it.

    Attributes:
        failures_s: virtual times at which the batcher has reported a failure.
        closing: whether the batcher is closing.
        answered_tokens: tokens of all answered requests.
    """

    loop: VirtualLoop
    batcher: Batcher
    faults: Faults
    failures_s: list[float]
    closing: bool = False
    answered_tokens: int = 0

    @property
    def may_refuse(self) -> bool:
        """Whether the batcher may refuse all requests, because it closes or a worker has died."""
        return self.closing or self.faults.may_fail


@dataclass
class Call:
    """A request of one or more passes, submitted together or in groups.

    Attributes:
        alone: whether no other request is in progress at its start.
    """

    service: Service
    number: int
    lengths: Sequence[int]
    groups: int
    timeout_s: float
    _: KW_ONLY
    bulk: bool
    alone: bool = False
    _passes: list[ModelPass] = field(init=False)

    def __post_init__(self) -> None:
        self._passes = [_pass(self.number, i, length) for i, length in enumerate(self.lengths)]
        if self._is_bad:
            self._passes[-1].input_ids[-1] = BAD_ID

    def __str__(self) -> str:
        lane = " bulk" if self.bulk else ""
        return (
            f"request {self.number} {len(self.lengths)} passes {self.groups} groups "
            f"{self.timeout_s:.4f} s{lane}"
        )

    async def run(self) -> str:
        """Submit the passes, check what comes of it, and return the end in one or two words."""
        loop = self.service.loop
        begun_s, begun_frozen_s = loop.now_s, loop.frozen_s
        timeout = asyncio.timeout(self.timeout_s)
        end, problem = await self._submit(timeout)
        used_s = loop.now_s - begun_s
        awake_s = used_s - (loop.frozen_s - begun_frozen_s)
        if timeout.expired() and end not in {"late", "left"}:
            problem = "loses its deadline"
        elif end == "late" and used_s < self.timeout_s:
            problem = "is late before its time"
        elif awake_s > self.timeout_s + _LATE_S:
            problem = f"ends {awake_s - self.timeout_s:.3f} s after its deadline"
        elif self.service.failures_s and awake_s > MAX_STALL_S + _LATE_S:
            waited_s = loop.now_s - max(begun_s, self.service.failures_s[0])
            if waited_s - (loop.frozen_s - begun_frozen_s) > MAX_STALL_S + _LATE_S:
                problem = "waits for a failed batcher"
        if problem is not None:
            loop.violate(f"{self}: it {problem} ({end}).")
        return end

    async def _submit(self, timeout: asyncio.Timeout) -> tuple[str, str | None]:  # noqa: ASYNC109, PLR0911 - one for each end
        """Return the end of the request, and what is wrong with it."""
        service = self.service
        groups = [self._passes[start :: self.groups] for start in range(self.groups)]
        tokens, limits = sum(self.lengths), service.batcher._admission._max_tokens
        parts = service.batcher.parts_of(tokens)
        try:
            async with timeout:
                outputs = await gather_or_cancel(
                    service.batcher.submit(group, bulk=self.bulk, parts=parts) for group in groups
                )
        except OverloadedError:
            alone = self.alone and tokens <= min(limits.values())
            return "rejected", "is rejected by an idle batcher" if alone else None
        except InvalidRequestError:
            return "too long", None
        except NotReadyError:
            return "not ready", None if service.may_refuse else "is refused by a running batcher"
        except TimeoutError:
            return "late", None
        except (RuntimeError, WorkerDeathError) as error:
            fails = self._is_bad or service.faults.failing_s > 0
            return "failed", None if fails else f"fails with {error!r}"
        except asyncio.CancelledError:
            return "left", None
        finally:
            service.batcher.forget(parts)
        if self._is_bad:
            return "answered", "hides the failure of its last pass"
        service.answered_tokens += sum(self.lengths)
        own = all(map(_are_answers, groups, outputs))
        return "answered", None if own else "gets other answers than its own"

    @property
    def _is_bad(self) -> bool:
        return self.number % _BAD_EVERY == 0


def _pass(number: int, index: int, length: int) -> ModelPass:
    ids = np.full(length, 7, dtype=np.int64)
    ids[0], ids[-1] = number, index
    return ModelPass(ids, np.array([_MASK]), _TOP_K, no_targets(1))


def _are_answers(passes: Sequence[ModelPass], outputs: Sequence[PassOutputs]) -> bool:
    return len(passes) == len(outputs) and all(map(_is_answer, passes, outputs))


def _is_answer(one: ModelPass, output: PassOutputs) -> bool:
    ids, log_probs = log_probs_of(answer_key(one.input_ids, _MASK, 0))
    return output.top_ids.tolist() == [ids[:_TOP_K].tolist()] and np.array_equal(
        output.top_log_probs[0], log_probs[:_TOP_K]
    )

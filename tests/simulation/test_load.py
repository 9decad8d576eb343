"""Load on virtual time: accepted bulk requests end in time, and wrong estimates do not last.

The workers, the lanes and the admission are the service's own. Only the model is simulated.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.errors import InvalidRequestError, OverloadedError
from fillmask.observability.request_context import CURRENT_SCOPE, DEADLINE
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import simulated_machine
from tests.simulation.machine.runtime import SimulatedRuntime, Speed

TIMEOUT_S = 30.0
MAX_BATCH_TOKENS = 192


@dataclass
class World:
    """A batcher with its clients.

    Attributes:
        ends: number of requests by kind and end.
        answered_tokens: tokens of all answered requests.
    """

    loop: VirtualLoop
    batcher: Batcher
    speed: Speed
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered_tokens: int = 0

    async def ask(self, kind: str, timeout_s: float = TIMEOUT_S) -> str:
        """Send one request and return its end."""
        scope = {DEADLINE: self.loop.time() + timeout_s}
        end = "answered"
        token = CURRENT_SCOPE.set(scope)
        try:
            async with asyncio.timeout(timeout_s):
                tokens = await KINDS[kind](self.batcher)
            self.answered_tokens += tokens
        except OverloadedError:
            end = "rejected"
        except InvalidRequestError as error:
            end = "too long" if "time limit" in error.text else error.text
        except TimeoutError:
            end = "late"
        finally:
            CURRENT_SCOPE.reset(token)
        self.ends[kind, end] += 1
        return end

    async def client(self, kind: str, end_s: float) -> None:
        """Send requests one after another, with a pause after each rejection."""
        while self.loop.time() < end_s:
            if await self.ask(kind) != "answered":
                await asyncio.sleep(1)

    async def run(self, seconds: float, **clients: int) -> None:
        """Run clients by kind until their last requests have ended."""
        end_s = self.loop.time() + seconds
        kinds = [kind for kind, count in clients.items() for _ in range(count)]
        await asyncio.gather(*(self.client(kind, end_s) for kind in kinds))


def passes(count: int, tokens: int) -> list[ModelPass]:
    ids = np.full(tokens, 7, dtype=np.int64)
    return [ModelPass(ids, np.array([1]), 2, no_targets(1)) for _ in range(count)]


async def score(batcher: Batcher) -> int:
    await batcher.submit(passes(45, 182), bulk=True)
    return 45 * 182


async def rerank(batcher: Batcher) -> int:
    await batcher.submit(passes(16, 120))
    return 16 * 120


async def words(batcher: Batcher) -> int:
    # passes that depend on those before, as in a search for whole words
    parts = batcher.parts_of(100, 12 * 2 * 62)
    try:
        for _ in range(12):
            await batcher.submit(passes(2, 62), bulk=True, parts=parts)
    finally:
        batcher.forget(parts)
    return 12 * 2 * 62


async def fill(batcher: Batcher) -> int:
    await batcher.submit(passes(1, 16))
    return 16


KINDS: dict[str, Callable[[Batcher], Awaitable[int]]] = {
    "score": score,
    "rerank": rerank,
    "words": words,
    "fill": fill,
}


def in_world(
    live: Callable[[World], Awaitable[None]], tokens_per_s: float = 1000, estimate: float = 1.0
) -> World:
    """Run a function with two workers on virtual time.

    Args:
        estimate: estimate of the throughput at the start, as a share of the true one.
    """
    loop = VirtualLoop(Random("loop"))
    speed = Speed(tokens_per_s)
    worlds = []

    async def run() -> None:
        runtime = SimulatedRuntime(loop, Random("runtime"), speed, 0, ("fill-mask",))
        batcher = Batcher(runtime.run, 2, MAX_BATCH_TOKENS, 32768, 262144, 0.35, pytest.fail)
        batcher.record_throughput(MAX_BATCH_TOKENS, MAX_BATCH_TOKENS / tokens_per_s / estimate)
        worlds.append(World(loop, batcher, speed))
        await live(worlds[0])
        assert batcher.accepted_tokens == 0
        assert not batcher._admission._promised
        assert batcher._admission._promised_tokens == 0
        await batcher.close()
        runtime.close()

    with simulated_machine(loop, Disk(loop, Random("disk"), speed)):
        loop.run(run())
    return worlds[0]


@pytest.mark.parametrize(
    "clients",
    [
        {"score": 30},
        {"score": 10, "rerank": 10, "words": 10},
        {"score": 10, "rerank": 10, "words": 5, "fill": 50},
    ],
    ids=" ".join,
)
def test_no_accepted_request_is_late(clients: dict[str, int]) -> None:
    async def live(world: World) -> None:
        await world.run(60, **clients)

    world = in_world(live)
    assert not [end for end in world.ends if end[1] in {"late", "too long"}], world.ends
    assert all(world.ends[kind, "answered"] for kind in clients), world.ends


def test_an_overload_does_as_much_work_as_one_client() -> None:
    async def alone(world: World) -> None:
        await world.run(60, score=1)

    async def crowd(world: World) -> None:
        await world.run(60, score=15, rerank=15)

    assert in_world(crowd).answered_tokens >= 0.9 * in_world(alone).answered_tokens


def test_fills_that_come_later_leave_accepted_requests_their_time() -> None:
    # The fills alone would take all time of the workers but the smallest share.
    async def live(world: World) -> None:
        bulk = asyncio.gather(*(world.ask("score") for _ in range(3)))
        await asyncio.sleep(0.5)
        await world.run(60, fill=75)
        await bulk

    world = in_world(live)
    assert world.ends["score", "late"] == 0, world.ends
    assert world.ends["score", "answered"] >= 2


def test_a_request_that_is_too_long_for_its_time_says_so() -> None:
    async def live(world: World) -> None:
        assert await world.ask("score", timeout_s=2) == "too long"
        assert await world.ask("score") == "answered"

    in_world(live)


async def answered_share(world: World, seconds: float) -> float:
    """Return the share of answers among the fills of as many clients as two workers can serve."""
    world.ends.clear()
    await world.run(seconds, fill=20)
    return world.ends["fill", "answered"] / world.ends.total()


def test_a_slower_machine_rejects_more_at_once() -> None:
    async def live(world: World) -> None:
        assert await answered_share(world, 2) == 1
        world.speed.tokens_per_s /= 5
        await answered_share(world, 10)
        assert world.batcher.load.tokens_per_s == pytest.approx(400, rel=0.3)
        assert await answered_share(world, 5) < 0.9
        world.speed.tokens_per_s *= 5
        await answered_share(world, 10)
        assert await answered_share(world, 4) == 1

    in_world(live)


@pytest.mark.parametrize("estimate", [0.01, 100])
def test_a_wrong_estimate_does_not_last(estimate: float) -> None:
    # Nothing but the refused requests could correct an estimate that is too low.
    async def live(world: World) -> None:
        for _ in range(11):
            await world.ask("score")
            await asyncio.sleep(30)
        assert await world.ask("score") == "answered"

    in_world(live, estimate=estimate)

"""Faults of the machine, which any process must survive."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.runtime import Speed

MACHINE_FAULTS = ("freeze", "stall", "slow", "failing", "dying")
# seconds of the longest freeze or stall
MAX_STALL_S = 32.0
# seconds after the last failing run in which requests may still report it
_REPORTED_S = 60.0


class Faults:
    """Faults on the machine of one process.

    Attributes:
        speed: speed of the process's runtimes.
        disturbed_s: end of the last fault that delays batches.
        failing_s: end of the time in which requests may report failing runs.
        may_fail: whether a fault may end the process.
    """

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self._loop = loop
        self._random = random
        self.speed = Speed(tokens_per_s=10 ** random.uniform(2.7, 3.7))
        self.disturbed_s = self.failing_s = 0.0
        self.may_fail = False

    def disturb(self, seconds: float) -> None:
        """Expect delays and failures of batches for a time."""
        self.disturbed_s = max(self.disturbed_s, self._loop.now_s + seconds)

    async def run(self, kind: str, seconds: float) -> None:
        """Run one of MACHINE_FAULTS. Those that last take `seconds`."""
        stall_s = 10 ** self._random.uniform(-1, 1.5)
        match kind:
            case "freeze":
                self.disturb(stall_s)
                self._loop.freeze(stall_s)
            case "stall":
                self.speed.stall_s = stall_s
                self.disturb(stall_s)
            case "slow":
                await self._slow(seconds)
            case "failing":
                await self._fail(seconds)
            case "dying":
                self.may_fail = self.speed.dying = True

    async def flood(
        self,
        seconds: float,
        send: Callable[[float, float], Coroutine[Any, Any, None]],
        *,
        stalled: bool,
    ) -> None:
        """Send far more than the workers can compute, with a freeze or a stall in the middle.

        Args:
            send: function that sends requests for some seconds at a load.
            stalled: whether something stops in the middle.
        """
        if not stalled:
            await send(min(seconds, 2.0), 20.0)
            return
        sending = self._loop.create_task(send(1.0, 10.0))
        await asyncio.sleep(0.5)
        await self.run(self._random.choice(["freeze", "stall"]), seconds)
        await sending

    async def _slow(self, seconds: float) -> None:
        factor = self._random.choice([3, 10, 50])
        self.speed.tokens_per_s /= factor
        self.disturb(seconds)
        await asyncio.sleep(seconds)
        self.speed.tokens_per_s *= factor

    async def _fail(self, seconds: float) -> None:
        self.speed.failing = self._random.choice([0.1, 0.5, 1.0])
        self.failing_s = float("inf")
        self.disturb(seconds + _REPORTED_S)
        await asyncio.sleep(seconds)
        self.speed.failing = 0.0
        self.failing_s = self._loop.now_s + _REPORTED_S

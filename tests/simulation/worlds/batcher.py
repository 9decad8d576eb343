"""The world of the batcher alone, which runs several times as many requests a second."""

import asyncio
from collections import Counter
from random import Random

from fillmask.engine.batcher import Batcher
from tests.simulation.machine.disk import Disk
from tests.simulation.machine.loop import VirtualLoop, in_order
from tests.simulation.machine.process import simulated_machine
from tests.simulation.machine.runtime import SimulatedRuntime, Speed
from tests.simulation.trace import Trace
from tests.simulation.worlds.calls import Call, Service
from tests.simulation.worlds.faults import MACHINE_FAULTS, MAX_STALL_S, Faults

_KINDS = (*MACHINE_FAULTS, "flood", "stalled flood", "close", "leave", "silence")
# Load and seconds of the phase in which a batcher must have recovered, and the share to answer.
_NORMAL_LOAD, _RECOVERY_S, _JUDGED_S, _MAX_JUDGED, _MIN_ANSWERED = 0.6, 10.0, 10.0, 400, 0.95
# the same for an overload, as a share of what the workers can compute
_OVERLOAD, _OVERLOAD_S, _MIN_COMPUTED = 3.0, 5.0, 0.3
# an estimate below this share of what the workers have computed is wrong
_MIN_ESTIMATE = 0.5
# most requests of a phase, and the mean tokens of a pass
_MAX_PHASE, _MEAN_TOKENS = 1_000, 13
# share of the callers that cancel their request when many leave
_LEAVING = 0.7


class BatcherWorld:
    """Batchers one after another, with callers that submit passes and give up.

    Attributes:
        statuses: number of requests by their end.
        faults: number of faults by kind.
    """

    def __init__(self, seed: int, requests: int, trace: Trace) -> None:
        self._random = random = Random(f"{seed}/world")
        self._loop = VirtualLoop(Random(f"{seed}/loop"))
        self._runtime_random = Random(f"{seed}/runtime")
        self._trace = trace
        self._max_requests = requests
        self._sent = 0
        # each seed has its own faults and habits, so that rare mixtures also occur
        self._kinds = [kind for kind in _KINDS if random.random() < 0.5] or ["silence"]
        self._hasty = random.choice([0.0, 0.1, 0.5])
        self._heavy = random.choice([0.0, 0.1, 0.5])
        self._tasks: set[asyncio.Task[None]] = set()
        self.statuses: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._faults: Faults
        self._service: Service
        self._capacity_per_s: float

    def run(self) -> None:
        """Run the world to its end, or raise a ViolationError."""
        with simulated_machine(self._loop, Disk(self._loop, self._random, Speed())):
            self._loop.run(self._live())

    async def _live(self) -> None:
        while self._sent < self._max_requests:
            await self._run_batcher()

    async def _run_batcher(self) -> None:
        """Run one batcher from its creation to the end of its threads."""
        random = self._random
        runtime = self._start()
        self._loop.on_step = self._check_step
        for _ in range(random.randint(1, 8)):
            fault = random.choice(self._kinds)
            seconds = random.uniform(0.2, 4.0)
            load = random.choice([0.2, 0.6, 1.0, 3.0])
            # fast machines would spend all requests of the world on one phase
            seconds = min(seconds, _MAX_PHASE * self._mean_s() / load)
            disturbance = self._loop.create_task(self._disturb(fault, seconds))
            await self._send_for(seconds, load)
            await disturbance
            judged = fault == "stalled flood" or random.random() < 0.4
            if judged and not self._service.may_refuse:
                await self._check_recovery()
            if self._sent >= self._max_requests or self._service.may_refuse:
                break
        await self._end()
        self._loop.on_step = self._loop.do_nothing
        runtime.close()

    def _start(self) -> SimulatedRuntime:
        random, loop = self._random, self._loop
        self._faults = Faults(loop, random)
        speed = self._faults.speed
        speed.threads = random.choice([1, 2])
        runtime = SimulatedRuntime(loop, self._runtime_random, speed, 0, ("fill-mask",))
        workers, budget = random.choice([1, 2, 4]), random.choice([16, 64, 192])
        failures: list[float] = []
        batcher = Batcher(
            runtime.run,
            workers,
            max_batch_tokens=budget,
            max_waiting_tokens=random.choice([400, 4_000, 32_768]),
            max_bulk_tokens=random.choice([2_000, 50_000]),
            max_wait_s=random.choice([0.2, 0.35, 1.0]),
            on_failure=lambda _: failures.append(loop.now_s),
        )
        batch_s = speed.base_s + budget / speed.tokens_per_s
        batcher.record_throughput(budget, batch_s)
        self._workers, self._capacity_per_s = workers, workers * budget / batch_s
        self._service = Service(loop, batcher, self._faults, failures)
        self._note(f"start {workers} workers, {budget} tokens a batch")
        return runtime

    def _mean_s(self) -> float:
        """Return the mean time between two requests of one pass that keep all workers busy."""
        return _MEAN_TOKENS / self._capacity_per_s

    async def _disturb(self, fault: str, seconds: float) -> None:
        """Do one thing that a batcher must survive, at a drawn time within a phase."""
        await asyncio.sleep(self._random.uniform(0, seconds))
        if fault == "silence":
            return
        self.faults[fault] += 1
        self._note(f"fault {fault}")
        match fault:
            case "flood" | "stalled flood":
                stalled = fault == "stalled flood"
                await self._faults.flood(seconds, self._send_for, stalled=stalled)
            case "close":
                self._service.closing = True
                await self._service.batcher.close()
            case "leave":
                for task in in_order(self._tasks):
                    if self._random.random() < _LEAVING:
                        task.cancel()
            case _:
                await self._faults.run(fault, seconds)

    async def _send_for(
        self, seconds: float, load: float, *, normal: bool = False, most: int = 10**9
    ) -> None:
        """Send requests that together need a share of the time of all workers."""
        random, speed = self._random, self._faults.speed
        end_s = self._loop.now_s + seconds
        for _ in range(most):
            count, timeout_s = 1, 60.0
            if not normal and random.random() < self._heavy:
                count = int(10 ** random.uniform(0, 1.7))
            if not normal and random.random() < self._hasty:
                # the shortest end while the request is still on its way into the queue
                timeout_s = 10 ** random.uniform(-3, random.choice([-2.2, 0.5]))
            lengths = [random.randint(2, 24) for _ in range(count)]
            cost_s = sum(lengths) / speed.tokens_per_s + speed.base_s
            await asyncio.sleep(random.expovariate(load * self._workers / cost_s))
            if self._loop.now_s > end_s:
                return
            groups = 1 if count == 1 or random.random() < 0.5 else min(count, 3)
            self._send(lengths, groups, timeout_s, bulk=not normal and random.random() < 0.2)

    def _send(
        self, lengths: list[int], groups: int, timeout_s: float, *, bulk: bool
    ) -> asyncio.Task[None]:
        self._sent += 1
        call = Call(self._service, self._sent, lengths, groups, timeout_s, bulk=bulk)
        call.alone = not self._tasks and not self._service.batcher.accepted_tokens
        task = self._loop.create_task(self._run_call(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_call(self, call: Call) -> None:
        self._note(str(call))
        end = await call.run()
        self._note(f"{end} {call.number}")
        self.statuses[end] += 1

    def _check_step(self) -> None:
        admission = self._service.batcher._admission  # `load` takes too long here
        for bulk, accepted in admission._accepted.items():
            if not 0 <= accepted <= admission._max_tokens[bulk]:
                self._loop.violate(f"The batcher has accepted {accepted} tokens.")

    async def _check_recovery(self) -> None:
        """Check that nothing is left after a silence, and that a normal load is answered."""
        if self._tasks:
            await asyncio.wait(in_order(self._tasks))
        await asyncio.sleep(max(0.0, self._faults.disturbed_s - self._loop.now_s) + MAX_STALL_S)
        if self._service.batcher.accepted_tokens:
            self._loop.violate(f"{self._service.batcher.accepted_tokens} tokens stay accepted.")
        await self._send_for(_RECOVERY_S, _NORMAL_LOAD, normal=True, most=_MAX_JUDGED)
        before = Counter(self.statuses)
        await self._send_for(_JUDGED_S, _NORMAL_LOAD, normal=True, most=_MAX_JUDGED)
        new = self.statuses - before
        self._note(f"recovered {new['answered']} of {new.total()}")
        if new["answered"] + new["failed"] < _MIN_ANSWERED * new.total():
            self._loop.violate(f"Under a normal load, not all requests are answered: {new}.")
        # An idle batcher computes any request within its limits, whatever its parts. The request
        # comes last, because its large batch renews the estimate.
        if self._tasks:
            await asyncio.wait(in_order(self._tasks))
        await self._send([24] * self._random.randint(2, 16), 2, 60.0, bulk=False)
        await self._check_overload()

    async def _check_overload(self) -> None:
        """Check that under an overload the workers are busy and the bulk lane gets its turns."""
        service = self._service
        begun_s, before = self._loop.now_s, service.answered_tokens
        bulk = self._send([9], 1, 60.0, bulk=True)
        await self._send_for(_OVERLOAD_S, _OVERLOAD, normal=True)
        computed = service.answered_tokens - before
        per_s = computed / (self._loop.now_s - begun_s)
        share = per_s / self._capacity_per_s
        self._note(f"overload {share:.2f}")
        if share < _MIN_COMPUTED:
            self._loop.violate(f"Under an overload, the workers compute {share:.2f} of their best.")
        estimate = (service.batcher.load.tokens_per_s or 0.0) / max(per_s, 1.0)
        if estimate < _MIN_ESTIMATE:
            self._loop.violate(f"The estimate is {estimate:.2f} of the real throughput.")
        if not bulk.done():
            self._loop.violate("Under an overload, a bulk request gets no turn.")

    async def _end(self) -> None:
        """Close the batcher under load. It must answer what it has accepted, and end."""
        service = self._service
        self._note("close")
        service.closing = True
        sending = self._loop.create_task(self._send_for(1.0, 1.0))
        await service.batcher.close()
        await sending
        if self._tasks:
            await asyncio.wait(in_order(self._tasks), timeout=2 * MAX_STALL_S)
        if self._tasks:
            self._loop.violate(f"{len(self._tasks)} requests wait for a closed batcher.")
        if service.batcher.accepted_tokens:
            self._loop.violate(f"A closed batcher keeps {service.batcher.accepted_tokens} tokens.")
        if bool(service.failures_s) != (self._faults.speed.deaths > 0):
            self._loop.violate("The batcher does not report the end of a worker.")

    def _note(self, event: str) -> None:
        self._trace.add(self._loop.now_s, event)

"""The world of the whole service: processes one after another, their clients and faults."""

import asyncio
import signal
from collections import Counter
from random import Random

from fillmask.settings import Settings
from tests.simulation.clients.exchange import Client, Exchange, describe
from tests.simulation.clients.lesson import SMALLEST_BUDGET_BYTES, learn_answers
from tests.simulation.clients.questions import HEALTH, Question
from tests.simulation.machine.disk import BAD, MODELS, PARENT, SALTS, Disk
from tests.simulation.machine.loop import VirtualLoop, in_order
from tests.simulation.machine.process import Process, simulated_machine
from tests.simulation.trace import Trace
from tests.simulation.worlds.checks import DISTURBED_S, Checks
from tests.simulation.worlds.faults import MACHINE_FAULTS, MAX_STALL_S, Faults
from tests.simulation.worlds.habits import Habits

_KINDS = (
    *MACHINE_FAULTS,
    *("flood", "stalled flood", "reload", "bad reload", "kill", "write", "silence"),
)
# Load and seconds of the phase in which a service must have recovered. Most requests are answered.
_NORMAL_LOAD, _RECOVERY_S, _JUDGED_S, _MAX_JUDGED, _MIN_ANSWERED = 0.6, 10.0, 10.0, 400, 0.95
# seconds in which a bundle that stalls fails its verification
_VERIFICATION_S = 200.0
_PROBE_EVERY_S = 10.0
# most requests of a phase, and the tokens of a light one
_MAX_PHASE, _LIGHT_TOKENS = 400, 11


class ServiceWorld:
    """The world of one seed.

    Args:
        requests: number of requests after which the world ends.

    Attributes:
        statuses: number of exchanges by status, 0 without a response.
        faults: number of faults by kind.
    """

    def __init__(self, seed: int, requests: int, trace: Trace) -> None:
        self._random = random = Random(f"{seed}/world")
        self._loop = VirtualLoop(Random(f"{seed}/loop"))
        self.faults: Counter[str] = Counter()
        self._faults = Faults(self._loop, random)
        self._disk = Disk(self._loop, Random(f"{seed}/runtime"), self._faults.speed)
        self._max_requests = requests
        self._trace = trace
        self._sent = 0
        self.statuses: Counter[str] = Counter()
        # each seed has its own faults and habits, so that rare mixtures also occur
        self._kinds = [kind for kind in _KINDS if random.random() < 0.5] or ["silence"]
        self._habits = Habits(random)
        self._costs: dict[str, int]
        self._process: Process
        self._checks: Checks

    def run(self) -> None:
        """Run the world to its end, or raise a ViolationError."""
        self._costs = learn_answers()
        with simulated_machine(self._loop, self._disk):
            self._loop.run(self._live())

    async def _live(self) -> None:
        while self._sent < self._max_requests:
            await self._run_process()
            for task in in_order(asyncio.all_tasks()):  # as the end of a process does
                if task is not asyncio.current_task():
                    task.cancel()
            await asyncio.sleep(1)

    async def _run_process(self) -> None:
        """Run one process from its start to its end."""
        settings = self._habits.draw_settings()
        random = self._random
        self._faults = Faults(self._loop, random)
        self._disk.speed = self._faults.speed
        self._disk.mapped = random.random() < 0.2
        budget_bytes = random.choice([SMALLEST_BUDGET_BYTES, 100 * SMALLEST_BUDGET_BYTES])
        self._process = process = Process(self._loop, self._disk, settings, budget_bytes)
        self._checks = Checks(self._loop, process, settings, self._faults, self._costs)
        self._note(f"start {settings.threads} threads, {settings.max_batch_tokens} tokens a batch")
        running = self._loop.create_task(process.run())
        await process.ready.wait()
        if process.started:
            self._loop.on_step = self._checks.step
            background = [self._loop.create_task(one) for one in (self._watch(), self._probe())]
            await self._run_phases()
            await self._end(running, settings)
            for task in background:
                task.cancel()
            self._loop.on_step = self._loop.do_nothing
        await asyncio.wait([running])
        self._check_exit(running)
        self.statuses += Counter({str(one): n for one, n in self._checks.statuses.items()})

    async def _run_phases(self) -> None:
        """Send requests in phases of different load, each with a fault."""
        random = self._random
        if random.random() < 0.3:  # a process that nobody asks for a while
            await self._check_recovery()
        for _ in range(random.randint(1, 6)):
            seconds = random.uniform(0.5, 5.0)
            fault = random.choice(self._kinds)
            load = random.choice([0.2, 0.6, 1.0, 3.0])
            # fast machines would spend all requests of the world on one phase
            seconds = min(seconds, _MAX_PHASE * self._mean_s() / load)
            disturbance = self._loop.create_task(self._disturb(fault, seconds))
            await self._send_for(seconds, load)
            await disturbance
            if fault == "stalled flood" or random.random() < 0.4:
                await self._check_recovery()
            if not self._process.accepting or self._sent >= self._max_requests:
                return

    def _mean_s(self) -> float:
        """Return the mean time between two light requests that keep all workers busy."""
        workers = self._checks.settings.threads
        return _LIGHT_TOKENS / self._faults.speed.tokens_per_s / workers

    async def _disturb(self, fault: str, seconds: float) -> None:
        """Do one thing that a service must survive, at a drawn time within a phase."""
        await asyncio.sleep(self._random.uniform(0, seconds))
        if not self._process.accepting or fault == "silence":
            return
        self.faults[fault] += 1
        self._note(f"fault {fault}")
        path = PARENT / self._random.choice(list(MODELS))
        match fault:
            case "reload":
                for one in range(4):  # which the reload overtakes at different points
                    client = Client(body_s=self._random.uniform(0, 3), parts=1 + one % 2)
                    self._send(self._habits.draw_question(normal=False), client)
                self._disk.put(path, self._random.randrange(SALTS), "good")
                await self._reload()
            case "bad reload":
                good = self._disk.versions[path]
                self._disk.put(path, self._random.randrange(SALTS), self._random.choice(BAD))
                self._faults.disturb(_VERIFICATION_S)
                await self._reload()
                self._disk.put(path, good.salt, "good")
            case "flood" | "stalled flood":
                stalled = fault == "stalled flood"
                await self._faults.flood(seconds, self._send_for, stalled=stalled)
            case "kill":
                self._process.accepting = False
                self._checks.killed = True
            case "write":
                self._faults.may_fail |= self._disk.mapped
                self._disk.write_to_weights(path)
            case _:
                await self._faults.run(fault, seconds)

    async def _reload(self) -> None:
        self._loop.signal_handlers[signal.SIGHUP]()
        await asyncio.sleep(self._random.uniform(0, 3))

    async def _check_recovery(self) -> None:
        """Check that a normal load is answered again, some time after the last fault."""
        checks = self._checks
        await self._settle()
        if not self._process.accepting:
            return
        checks.check_quiet()
        await self._send_for(_RECOVERY_S, _NORMAL_LOAD, normal=True, most=_MAX_JUDGED)
        before = Counter(checks.statuses)
        await self._send_for(_JUDGED_S, _NORMAL_LOAD, normal=True, most=_MAX_JUDGED)
        new = checks.statuses - before
        self._note(f"recovered {new[200]} of {new.total()}")
        if self._process.accepting and new[200] < _MIN_ANSWERED * new.total():
            self._loop.violate(f"Under a normal load, not all requests are answered: {new}.")

    async def _settle(self) -> None:
        """Wait until all faults are over, and no probe may fail or client wait any more."""
        await self._wait_for_ends()
        for fault in ("stall", "failing"):
            if fault in self._kinds and self._random.random() < 0.3:
                self.faults[fault] += 1  # which only a probe will meet
                await self._faults.run(fault, 2 * _PROBE_EVERY_S)
        over_s = max(0.0, self._faults.disturbed_s - self._loop.now_s)
        await asyncio.sleep(over_s + DISTURBED_S + 2 * _PROBE_EVERY_S)
        await self._wait_for_ends()

    async def _wait_for_ends(self) -> None:
        while self._process.accepting and self._checks.in_progress:
            await asyncio.sleep(1)

    async def _send_for(
        self, seconds: float, load: float, *, normal: bool = False, most: int = 10**9
    ) -> None:
        """Send requests that together need a share of the time of all workers."""
        random, speed = self._random, self._faults.speed
        end_s = self._loop.now_s + seconds
        for _ in range(most):
            question = self._habits.draw_question(normal=normal)
            cost_s = self._costs[question.label] / speed.tokens_per_s + speed.base_s
            workers = self._checks.settings.threads
            await asyncio.sleep(random.expovariate(load * workers / cost_s))
            if self._loop.now_s > end_s or not self._process.accepting:
                return
            self._send(question, self._habits.draw_client(normal=normal))

    def _send(self, question: Question, client: Client) -> None:
        if not self._process.accepting:
            return
        self._sent += 1
        exchange = Exchange(self._loop, self._sent, question, client)
        self._note(describe(exchange))
        self._checks.begin(exchange)
        self._process.open(exchange, self._end_exchange)

    def _end_exchange(self, exchange: Exchange) -> None:
        self._note(f"response {exchange.number} {exchange.status} {len(exchange.body)}")
        self._checks.end(exchange)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self._checks.check_waiting()

    async def _probe(self) -> None:
        """Ask for the readiness, as an orchestrator does."""
        while True:
            await asyncio.sleep(_PROBE_EVERY_S)
            self._send(HEALTH, Client())

    async def _end(self, running: asyncio.Task[None], settings: Settings) -> None:
        """End the process by SIGTERM, unless a fault has already ended it."""
        if self._checks.killed:
            running.cancel()  # stands for the end of all its threads and connections
            await asyncio.wait([running])
            for exchange in list(self._checks.in_progress.values()):
                exchange.disconnect()
            return
        if self._process.accepting:
            self._note("SIGTERM")
            self._process.terminate()
        sending = self._loop.create_task(self._send_for(5, 1.0))
        limit_s = settings.drain_delay_s + settings.shutdown_grace_s + 2 * MAX_STALL_S
        await asyncio.wait([running], timeout=limit_s)
        if not running.done():
            self._loop.violate(f"The process still runs {limit_s} s after its end began.")
        sending.cancel()

    def _check_exit(self, running: asyncio.Task[None]) -> None:
        """Check the exit code of a process, and repair what prevents the start of the next."""
        code = self._process.exit_code
        self._note(f"exit code {code}")
        versions = self._disk.versions
        bad = [path for path, version in versions.items() if version.health != "good"]
        for path in bad:
            self._disk.put(path, versions[path].salt, "good")
        if self._checks.killed:
            return
        running.result()
        allowed = {0, 1} if self._faults.may_fail else {0}
        if self._faults.speed.deaths:
            allowed = {1}
        if code not in (allowed if self._process.started else {2}) or (code == 2 and not bad):
            self._loop.violate(f"The process ends with the exit code {code}.")

    def _note(self, event: str) -> None:
        self._trace.add(self._loop.now_s, event)

"""What the service promises, checked at every step and at the end of each request."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fillmask.middleware.cancellation import RECEIVE_TIMEOUT_S, SEND_TIMEOUT_S
from fillmask.settings import Settings
from tests.simulation.clients.exchange import Exchange, describe
from tests.simulation.clients.questions import HEALTH
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process
from tests.simulation.worlds.faults import MAX_STALL_S, Faults

# a time limit that is long for most questions, even on the slowest simulated machine
LONG_TIMEOUT_S = 2.0
# time that a response may take beyond its deadline
LATE_S = 1.0
# A stall holds up the next batch, which may be that of a probe, ten seconds after the fault.
DISTURBED_S = MAX_STALL_S + 13.0


@dataclass
class Checks:
    """Promises to the clients of a process.

    Attributes:
        costs: cost of each question by its label, in tokens.
        statuses: number of ended exchanges by status, 0 without a response.
        versions: salts of the served models, one dictionary after each load.
        in_progress: exchanges whose response is not complete.
        killed: whether the process has ended from one moment to the next.
    """

    loop: VirtualLoop
    process: Process
    settings: Settings
    faults: Faults
    costs: Mapping[str, int]
    statuses: Counter[int] = field(default_factory=Counter)
    versions: list[dict[str, int]] = field(default_factory=list)
    in_progress: dict[int, Exchange] = field(default_factory=dict)
    killed: bool = False
    _names: object = None

    def step(self) -> None:
        """Check the bounds of admission and memory. Each iteration of the loop calls this."""
        models = getattr(self.process.app.state, "models", None)
        if models is None:
            return
        names = models.by_name
        if names is not self._names:
            self._names = names
            self.versions.append({one.name: int(one.info.description) for one in names.values()})
        for model in names.values():
            admission = model.batcher._admission
            for bulk, accepted in admission._accepted.items():
                if not 0 <= accepted <= admission._max_tokens[bulk]:
                    self.loop.violate(f"{model.name} has accepted {accepted} tokens.")
        budget = self.process.budget
        if not 0 <= budget.held_bytes <= budget.max_bytes:
            self.loop.violate(f"All bodies and responses hold {budget.held_bytes} bytes.")

    def begin(self, exchange: Exchange) -> None:
        """Record the start of an exchange."""
        exchange.alone = self.is_idle()
        for other in self.in_progress.values():
            other.alone = False
        exchange.versions_before = max(len(self.versions) - 1, 0)
        self.in_progress[exchange.number] = exchange

    def end(self, exchange: Exchange) -> None:
        """Check a response, or the reason why there is none."""
        del self.in_progress[exchange.number]
        if self.killed:
            return
        self.statuses[exchange.status if not exchange.gone else 0] += 1
        problem = None if exchange.gone or exchange.client.breaks else self._problem(exchange)
        if problem is not None:
            status, body = exchange.status, exchange.body[:200]
            self.loop.violate(f"{describe(exchange)}: {problem} (got {status} {body!r})")

    def check_waiting(self) -> None:
        """Check that no exchange waits beyond its deadline."""
        for exchange in self.in_progress.values():
            now_s = self.loop.now_s - (self.loop.frozen_s - exchange.begun_frozen_s)
            if exchange.started_s is not None:
                limit_s = exchange.started_s + SEND_TIMEOUT_S
            elif exchange.arrived_s is not None:
                limit_s = exchange.arrived_s + self._timeout_s(exchange)
            else:
                limit_s = exchange.begun_s + RECEIVE_TIMEOUT_S
            if now_s > limit_s + LATE_S + 1:
                self.loop.violate(
                    f"{describe(exchange)}: still no response {now_s - limit_s:.1f} s after its "
                    "deadline"
                )

    def is_idle(self) -> bool:
        """Return whether the process has nothing to do."""
        if self.in_progress or self.process.budget.held_bytes:
            return False
        models = self.process.app.state.models.by_name.values()
        return not any(model.batcher.accepted_tokens for model in models)

    def check_quiet(self) -> None:
        """Check that all counts are zero while nothing is in progress, and that old models go."""
        if self.in_progress:
            self.loop.violate(f"{len(self.in_progress)} requests are in progress after a silence.")
        models = self.process.app.state.models.by_name
        loaded = len(self.faults.speed.alive)
        if loaded != len(models):
            self.loop.violate(f"{loaded} models are loaded, and {len(models)} are served.")
        for model in models.values():
            if model.batcher.accepted_tokens:
                self.loop.violate(f"{model.name} keeps {model.batcher.accepted_tokens} tokens.")
            if model.in_use._count:
                self.loop.violate(f"{model.name} stays in use.")
        if self.process.budget.held_bytes:
            self.loop.violate(f"{self.process.budget.held_bytes} bytes of the budget stay held.")

    def _problem(self, exchange: Exchange) -> str | None:  # noqa: PLR0911 - one for each status
        """Return what is wrong with the end of an exchange."""
        if not exchange.answered:
            return None if self._is_cut_off(exchange) else "no complete response"
        late_s = self._late_s(exchange)
        if late_s > LATE_S:
            return f"the response comes {late_s:.3f} s after its deadline"
        match exchange.status:
            case 429:
                return self._problem_of_rejection(exchange)
            case 422 if b"time limit" in exchange.body:
                needed_s = self.costs[exchange.question.label] / self.faults.speed.tokens_per_s
                long = self._timeout_s(exchange) > max(LONG_TIMEOUT_S, 2 * needed_s)
                return "a request is too long for a long time limit" if long else None
            case 500:
                return None if self.faults.failing_s >= exchange.begun_s else "an internal error"
            case 503:
                return self._problem_of_unavailability(exchange)
            case 504:
                in_time = late_s < 0
                return "the response says that its deadline has passed" if in_time else None
            case 408:
                waited_s = self.loop.now_s - exchange.begun_s
                return "a body in time is late" if waited_s < RECEIVE_TIMEOUT_S else None
        return self._problem_of_answer(exchange)

    def _problem_of_answer(self, exchange: Exchange) -> str | None:
        question = exchange.question
        given = exchange.status, exchange.body
        if question is HEALTH:
            return None if exchange.status == 200 else "an unknown status of health"
        for salts in self.versions[exchange.versions_before :]:
            if question.answers[salts[question.model]] == given:
                return None
        expected = question.answers[self.versions[-1][question.model]]
        return f"a quiet service answers {expected[0]} {expected[1][:200]!r}"

    def _problem_of_rejection(self, exchange: Exchange) -> str | None:
        if exchange.alone:
            return "an idle service rejects a request"
        retry_after = exchange.headers.get(b"retry-after", b"")
        if not (retry_after.isdigit() and 1 <= int(retry_after) <= 30):
            return "a rejection without a good Retry-After"
        return None

    def _problem_of_unavailability(self, exchange: Exchange) -> str | None:
        if self.process.app.state.health.stopping or self.faults.may_fail:
            return None
        disturbed = self.faults.disturbed_s + DISTURBED_S > exchange.begun_s
        if exchange.question is HEALTH and disturbed:
            return None
        return "a running service is unavailable"

    def _is_cut_off(self, exchange: Exchange) -> bool:
        """Return whether a client reads too slowly, or for longer than the process runs."""
        if exchange.started_s is None or not exchange.client.reads_s:
            return False
        late = self.loop.now_s >= exchange.started_s + SEND_TIMEOUT_S
        return late or self.process.app.state.health.stopping

    def _timeout_s(self, exchange: Exchange) -> float:
        return (exchange.client.timeout_ms or self.settings.request_timeout_ms) / 1000

    def _late_s(self, exchange: Exchange) -> float:
        """Return the seconds from the deadline to the start of the response, without freezes."""
        if exchange.arrived_s is None or exchange.started_s is None:
            return 0.0
        frozen_s = self.loop.frozen_s - exchange.begun_frozen_s
        used_s = exchange.started_s - exchange.arrived_s
        late_s = used_s - self._timeout_s(exchange)
        return late_s if late_s <= 0 else max(0.0, late_s - frozen_s)

"""Habits of a seed: what its operators set, what its clients ask and how they behave."""

from random import Random
from typing import Any

from fillmask.settings import Settings
from tests.simulation.clients.exchange import Client
from tests.simulation.clients.lesson import LIMITS, SMALLEST_QUEUE
from tests.simulation.clients.questions import Question, by_kind, questions


class Habits:
    """Habits of one seed. Each seed has few kinds of requests, so that rare mixtures also occur."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._rude = random.choice([0.0, 0.05, 0.3])
        self._hasty = random.choice([0.0, 0.1, 0.5])
        self._heavy = random.choice([0.05, 0.3, 0.8])
        self._light = [one for one in questions() if one.light]
        kinds = list(by_kind().values())
        self._others = random.sample(kinds, random.choice([1, 3, len(kinds)]))

    def draw_settings(self) -> Settings:
        """Return the settings of a process."""
        choice = self._random.choice
        queue: dict[str, Any] = choice(
            [SMALLEST_QUEUE, {"max_waiting_tokens": 32_768, "max_bulk_tokens": 100_000}]
        )
        drawn: dict[str, Any] = {
            "threads": choice([1, 2, 2, 4]),
            "max_batch_tokens": choice([16, 64, 192]),
            "max_wait_ms": choice([200, 350, 1_000]),
            "request_timeout_ms": choice([500, 5_000, 30_000]),
            "reload_every_s": choice([0, 1, 5]),
            "drain_delay_s": choice([0, 1, 3]),
            "shutdown_grace_s": choice([0, 2, 30]),
        }
        return Settings(**LIMITS, **queue, **drawn)

    def draw_question(self, *, normal: bool) -> Question:
        """Return a request. Normal ones are short plain fills."""
        random = self._random
        heavy = not normal and random.random() < self._heavy
        return random.choice(random.choice(self._others) if heavy else self._light)

    def draw_client(self, *, normal: bool) -> Client:
        """Return the behaviour of a client. Normal ones are patient and read what they get."""
        if normal:
            return Client()
        random = self._random
        timeout_ms = None
        if random.random() < self._hasty:
            timeout_ms = int(10 ** random.uniform(0, 3.5))
        if random.random() >= self._rude:
            return Client(timeout_ms)
        return Client(
            timeout_ms,
            body_s=random.choice([0, 0, 0.01, 1, 12]),
            parts=random.choice([1, 2, 4]),
            leaves_after_s=random.choice([None, 10 ** random.uniform(-4, 1)]),
            reads_s=random.choice([0, 0.1, 20]),
            breaks=random.random() < 0.1,
        )

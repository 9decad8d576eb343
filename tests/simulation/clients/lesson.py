"""What a quiet service answers to each question, and what the answer costs."""

import asyncio
from functools import cache
from random import Random
from typing import Any

from fillmask.settings import Settings
from tests.simulation.clients.exchange import Client, Exchange
from tests.simulation.clients.questions import questions
from tests.simulation.machine.disk import MODELS, PARENT, SALTS, Disk
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process, simulated_machine
from tests.simulation.machine.runtime import Speed

# limits that change what the service answers, the same in every world
LIMITS: dict[str, Any] = {
    "bundle": PARENT,
    "max_texts": 32,
    "max_masks": 64,
    "max_top_k": 20,
    "max_passes": 300,
    "max_body_bytes": 60_000,
}
SMALLEST_QUEUE: dict[str, Any] = {"max_waiting_tokens": 2_000, "max_bulk_tokens": 10_000}
SMALLEST_BUDGET_BYTES = 2**21
_TOKENS_PER_S, _END_S = 10_000, 60


@cache
def learn_answers() -> dict[str, int]:
    """Ask a quiet service each question once, for each salt of its models.

    Returns:
        The cost of each question by its label, in tokens.
    """
    costs: dict[str, int] = {}
    for salt in range(SALTS):
        loop = VirtualLoop(Random(0))
        disk = Disk(loop, Random(0), Speed(_TOKENS_PER_S))
        for name in MODELS:
            disk.put(PARENT / name, salt, "good")
        with simulated_machine(loop, disk):
            loop.run(_ask_all(loop, disk, salt, costs))
    return costs


async def _ask_all(loop: VirtualLoop, disk: Disk, salt: int, costs: dict[str, int]) -> None:
    settings = Settings(**LIMITS, **SMALLEST_QUEUE, threads=1, drain_delay_s=0)
    process = Process(loop, disk, settings, SMALLEST_BUDGET_BYTES)
    running = loop.create_task(process.run())
    await process.ready.wait()
    for number, question in enumerate(questions()):
        exchange = Exchange(loop, number, question, Client())
        ended = loop.create_future()
        process.open(exchange, ended.set_result)
        await ended
        question.answers[salt] = exchange.status, exchange.body
        costs[question.label] = max(10, int((loop.now_s - exchange.begun_s) * _TOKENS_PER_S))
    process.terminate()
    await asyncio.wait([running], timeout=_END_S)
    if not running.done():
        loop.violate("A quiet service does not end after SIGTERM.")

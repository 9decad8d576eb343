"""Deadlines that pass while an overloaded service rejects or fills texts."""

import asyncio
from collections import Counter

import httpx
import pytest

from tests.service.conftest import StartServer

CONNECTIONS = 64
REQUESTS = 4
# A missing response never arrives. On a busy machine, the others arrive seconds after the deadline.
PATIENCE_S = 20
BODY = {
    "inputs": ["the [MASK] is [MASK]", "a [MASK] of [MASK]"] * 3,
    "parameters": {"strategy": "joint"},
}


async def send(url: str) -> Counter[str]:
    """Return the number of responses by status, where "none" is a missing response."""
    outcomes: Counter[str] = Counter()

    async def send_in_turn(connection: int) -> None:
        # the deadlines of all requests are 1 to 50 ms
        for request in range(connection, CONNECTIONS * REQUESTS, CONNECTIONS):
            headers = {"X-Request-Timeout-Ms": str(1 + request % 50)}
            try:
                async with asyncio.timeout(PATIENCE_S):
                    answer = await client.post("/fill-mask", json=BODY, headers=headers)
            except TimeoutError:
                outcomes["none"] += 1
                return
            outcomes[str(answer.status_code)] += 1

    async with httpx.AsyncClient(base_url=url, timeout=None) as client:  # noqa: S113 - has its own
        await asyncio.gather(*map(send_in_turn, range(CONNECTIONS)))
    return outcomes


@pytest.mark.processes
async def test_every_request_is_answered(start_server: StartServer) -> None:
    # The queue has room for some of the texts. So texts of a request fail while others wait, and
    # some deadlines pass in the same iteration of the event loop as a failure.
    with start_server("--max-waiting-tokens=500") as (_, url):
        outcomes = await send(url)
    assert outcomes.keys() <= {"200", "429", "504"}, outcomes
    assert outcomes.total() == CONNECTIONS * REQUESTS

"""Trace id and durations of a request."""

import pytest
from fastapi.testclient import TestClient

from fillmask.observability.request_context import RequestTimes, trace_id

STEPS = ["tokenization", "queue", "inference"]
TRACE = b"0af7651916cd43dd8448eb211c80319c"
GOOD = b"00-%s-b7ad6b7169203331-01" % TRACE


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        (GOOD, True),
        (b" " + GOOD[:-2] + b"ff ", True),
        (b"cc" + GOOD[2:] + b"-x", True),  # a later version
        (b"", False),
        (GOOD.upper(), False),
        (GOOD[:-1], False),
        (GOOD.replace(b"a", b"g"), False),
        (GOOD + b"," + GOOD, False),
    ],
)
def test_traceparent(value: bytes, *, valid: bool) -> None:
    found = trace_id([(b"host", b"x"), (b"traceparent", value)])
    assert found == (TRACE.decode() if valid else None)


def test_no_moment_counts_twice() -> None:
    # The second pass waits while the first one runs, and the third runs within the second.
    times = RequestTimes()
    times.add("tokenization", 1, 2)
    times.add("queue", 2, 3)
    times.add("inference", 3, 5)
    times.add("queue", 2, 5)
    times.add("inference", 5, 8)
    times.add("queue", 2, 6)
    times.add("inference", 6, 7)
    assert times.seconds == {"tokenization": 1, "queue": 1, "inference": 5}
    assert times.header(8) == (
        b"app;dur=8000.00, tokenization;dur=1000.00, queue;dur=1000.00, inference;dur=5000.00"
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/fill-mask", {"inputs": ["a [MASK] [MASK]"] * 3, "parameters": {"strategy": "joint"}}),
        ("/score", {"inputs": ["the dog " * 10] * 4}),
    ],
)
def test_steps_of_a_task(client: TestClient, path: str, body: dict[str, object]) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    durations = dict(one.split(";dur=") for one in answer.headers["server-timing"].split(", "))
    assert list(durations) == ["app", *STEPS]
    total, *steps = map(float, durations.values())
    assert all(step >= 0 for step in steps)
    assert float(durations["inference"]) > 0
    assert sum(steps) <= total + 0.02  # each is rounded


def test_other_requests_have_the_total_alone(client: TestClient) -> None:
    assert client.get("/info").headers["server-timing"].count(";dur=") == 1

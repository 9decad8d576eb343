"""Responses of GET /metrics after requests to the service."""

import socket
from collections.abc import Iterator

import httpx
import pytest
from fastapi.testclient import TestClient

from tests.service.conftest import StartServer
from tests.service.scrape import samples, scrape, value
from tests.service.serving import serving
from tests.service.tiny import Tiny

FILL = {"inputs": ["the [MASK]", "a [MASK]"]}


@pytest.fixture
def client(tiny: Tiny) -> Iterator[TestClient]:
    """Client of a new service, which has received no requests."""
    with serving(tiny.path, max_body_bytes=2048) as test_client:
        yield test_client


def test_requests_are_counted_by_their_route(client: TestClient) -> None:
    # The metrics also count requests that bypass FastAPI.
    # No label contains text that clients send.
    name = client.get("/info").json()["name"]
    for path in ("/fill-mask", "/", f"/models/{name}"):
        assert client.post(path, json=FILL).is_success
    predicted = client.post(f"/v1/models/{name}:predict", json={"instances": FILL["inputs"]})
    assert predicted.is_success
    client.post("/score", json={"inputs": "the dog"})
    client.post("/fill-mask", content="x" * 3000)
    for path in ("/models/secret", "/secret", "/docs-assets/secret.css", "/docs-assets/secret.js"):
        assert client.get(path).status_code == 404
    client.delete("/fill-mask")
    client.head("/health/live")
    text = client.get("/metrics").text
    assert "secret" not in text
    found = samples(text)

    def counted(method: str, route: str, status: int) -> float:
        labels = {"method": method, "route": route, "status": str(status)}
        return value(found, "fillmask_requests_total", **labels)

    for route in ("/fill-mask", "/", "/models/{name}", "/v1/models/{name}:predict"):
        assert counted("POST", route, 200) == 1
    assert counted("POST", "/score", 200) == 1
    assert counted("POST", "/fill-mask", 413) == 1
    assert counted("GET", "/models/{name}", 404) == 1
    assert counted("GET", "other", 404) == 3
    assert counted("DELETE", "/fill-mask", 405) == 1
    assert counted("HEAD", "/health/live", 200) == 1


def test_passes_and_the_queue_of_a_model(client: TestClient) -> None:
    before = scrape(client)
    assert client.post("/fill-mask", json=FILL).is_success
    after = scrape(client)
    passes, model = "fillmask_passes_total", {"model": "tiny"}
    assert value(after, passes, **model) - value(before, passes, **model) == 2
    assert value(after, "fillmask_waiting_tokens_limit", lane="interactive", **model) > 0
    assert value(after, "fillmask_ready") == 1


@pytest.mark.processes
def test_it_may_have_a_port_of_its_own(start_server: StartServer) -> None:
    # If /metrics has a separate port, the service's main port has no /metrics.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with start_server(f"--metrics-port={port}") as (_, url), httpx.Client() as client:
        refused = client.get(f"{url}/metrics")
        assert refused.status_code == 404
        assert "Unknown path" in refused.json()["error"]
        assert httpx.get(f"http://127.0.0.1:{port}/health/live").json() == {"status": "live"}
        found = samples(httpx.get(f"http://127.0.0.1:{port}/metrics").text)
        assert value(found, "fillmask_ready") == 1
        assert value(found, "fillmask_connections") >= 1
        labels = {"method": "GET", "route": "other", "status": "404"}
        assert value(found, "fillmask_requests_total", **labels) == 1

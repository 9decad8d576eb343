"""Production overlay: scaling by the queue, scraping, and the route from outside."""

import re
from typing import Any

import pytest
from fastapi.routing import APIRoute

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.deploy import files, kustomize, monitoring

pytestmark = pytest.mark.processes

REQUEST_TIMEOUT_S = Settings.model_fields["request_timeout_ms"].default / 1000


def production(kind: str) -> dict[str, Any]:
    """Return the only object of a kind in the production overlay."""
    return kustomize.one(kustomize.rendered(files.K8S / "overlays" / "production"), kind)


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    return production("Service")


@pytest.fixture(scope="module")
def waiting() -> dict[str, str]:
    """Metadata of the KEDA trigger on the tokens in the queue."""
    triggers = production("ScaledObject")["spec"]["triggers"]
    (trigger,) = (each for each in triggers if each["type"] == "prometheus")
    metadata: dict[str, str] = trigger["metadata"]
    return metadata


@pytest.fixture(scope="module")
def rule() -> dict[str, Any]:
    """The only rule of the HTTPRoute."""
    (rule,) = production("HTTPRoute")["spec"]["rules"]
    return dict(rule)


def test_queue_that_scales_is_one_that_the_service_counts(
    waiting: dict[str, str], service: dict[str, Any]
) -> None:
    # The query also filters by namespace and job, labels that Prometheus adds. The operator names a
    # job after the Service.
    (metric,) = monitoring.metrics_of(waiting["query"])
    labels = dict(re.findall(r'(\w+)="(\w+)"', waiting["query"]))
    assert labels.pop("namespace") == service["metadata"]["namespace"]
    assert labels.pop("job") == service["metadata"]["name"]
    (label,) = labels.items()
    sample = rf'^{metric}\{{[^}}]*{label[0]}="{label[1]}"'
    assert re.search(sample, monitoring.exposition(), re.MULTILINE)


def test_queue_that_scales_is_short_of_the_one_that_rejects(waiting: dict[str, str]) -> None:
    most: int = Settings.model_fields["max_waiting_tokens"].default
    assert float(waiting["threshold"]) < most / 4


def test_prometheus_scrapes_a_port_of_the_service(paths: set[str], service: dict[str, Any]) -> None:
    monitor = production("ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    for endpoint in monitor["endpoints"]:
        assert endpoint["path"] in paths
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_route_leads_from_a_listener_with_tls_to_the_service(
    rule: dict[str, Any], service: dict[str, Any]
) -> None:
    gateway = production("Gateway")
    (listener,) = gateway["spec"]["listeners"]
    assert listener["protocol"] == "HTTPS"
    route = production("HTTPRoute")["spec"]
    # Without a name of its own, the route serves the name of the listener.
    assert listener["hostname"]
    assert "hostnames" not in route
    (parent,) = route["parentRefs"]
    assert (parent["name"], parent["sectionName"]) == (
        gateway["metadata"]["name"],
        listener["name"],
    )
    (backend,) = rule["backendRefs"]
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"] in {port["port"] for port in service["spec"]["ports"]}


def test_service_times_out_before_the_route_does(rule: dict[str, Any]) -> None:
    # Clients get an error message only if the service times out first.
    for timeout in rule["timeouts"].values():
        assert float(timeout.removesuffix("s")) > REQUEST_TIMEOUT_S


def is_routed(path: str, rule: dict[str, Any]) -> bool:
    for match in rule["matches"]:
        kind, value = match["path"]["type"], match["path"]["value"]
        if path == value or (kind == "PathPrefix" and path.startswith(f"{value}/")):
            return True
    return False


def test_route_lets_in_all_but_health_and_metrics(rule: dict[str, Any], paths: set[str]) -> None:
    pages = {
        getattr(route, "path", "")
        for route in create_app(Settings()).routes
        if not isinstance(route, APIRoute)
    }
    everything = paths | pages - {""}
    assert "/metrics" in everything
    for path in everything:
        assert is_routed(path, rule) is not path.startswith(("/health", "/metrics")), path

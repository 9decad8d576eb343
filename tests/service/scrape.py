"""Samples of /metrics, parsed by Prometheus's client library."""

from collections.abc import Mapping

from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from fillmask.observability.metrics import Metrics

# name and labels -> value
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Return all samples of a response from /metrics."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(scraped: Samples, name: str, **labels: str) -> float:
    """Return the value of one sample, by default 0."""
    return scraped.get((name, frozenset(labels.items())), 0)


def rendered(metrics: Metrics) -> Samples:
    """Return all samples of a scrape."""
    return samples(metrics.render("")[0].decode())


def scrape(client: TestClient) -> Samples:
    """Return the current samples of the service."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return samples(answer.text)

"""A scrape, read as Prometheus reads it."""

from collections.abc import Mapping

from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

# name and labels -> value
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Every sample of an exposition."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(scraped: Samples, name: str, **labels: str) -> float:
    """One sample; 0 where there is none."""
    return scraped.get((name, frozenset(labels.items())), 0)


def scrape(client: TestClient) -> Samples:
    """What the service says of itself now."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return samples(answer.text)

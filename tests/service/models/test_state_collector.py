"""Metrics of the current state of models."""

from types import SimpleNamespace
from typing import Any

import pytest

from fillmask.engine.admission import QueueLoad
from fillmask.models.state_collector import StateCollector
from fillmask.observability.metrics import Metrics
from tests.service.scrape import Samples, rendered, value

NAME = 'a "model"'  # needs escaping
LOAD = QueueLoad({"interactive": 12, "bulk": 34}, {"interactive": 100, "bulk": 1000}, 5000.0, 2)


def scraped(
    load: QueueLoad = LOAD, *, failure: str | None = None, reason: str | None = None
) -> Samples:
    """Return all samples of a service with one model."""
    info = SimpleNamespace(
        precision="int8",
        graph="fused",
        limits=SimpleNamespace(max_tokens=512),
        architecture=SimpleNamespace(d_model=384, num_layers=12, vocab_size=1000),
    )
    model: Any = SimpleNamespace(
        name=NAME,
        info=info,
        batcher=SimpleNamespace(load=load),
        probe=SimpleNamespace(last_failure=failure),
    )
    metrics = Metrics()
    metrics.add(StateCollector(lambda: [model], lambda: reason))
    return rendered(metrics)


def test_models() -> None:
    # Before the first batch, a throughput of zero would be wrong.
    idle = scraped(QueueLoad({"interactive": 0}, {"interactive": 1}, None, 1))
    assert not [name for name, _ in idle if name == "fillmask_tokens_per_second"]
    found = scraped()
    assert value(found, "fillmask_waiting_tokens", model=NAME, lane="interactive") == 12
    assert value(found, "fillmask_waiting_tokens_limit", model=NAME, lane="bulk") == 1000
    assert value(found, "fillmask_tokens_per_second", model=NAME) == 5000
    assert value(found, "fillmask_workers", model=NAME) == 2
    sizes = {"max_tokens": "512", "d_model": "384", "num_layers": "12", "vocab_size": "1000"}
    assert (
        value(found, "fillmask_model_info", model=NAME, precision="int8", graph="fused", **sizes)
        == 1
    )


@pytest.mark.parametrize(
    ("reason", "failure", "ready"),
    [(None, None, 1), ("It stops.", None, 0), (None, "It is stuck.", 0)],
)
def test_ready(reason: str | None, failure: str | None, ready: int) -> None:
    # The service is not ready after a failed probe of one of its models.
    found = scraped(reason=reason, failure=failure)
    assert found["fillmask_ready", frozenset()] == ready


@pytest.mark.parametrize("limit_bytes", [None, 2**29])
def test_memory_limit_is_absent_without_a_limit(
    limit_bytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fillmask.models.state_collector.memory_limit_bytes", lambda: limit_bytes)
    assert scraped().get(("fillmask_memory_limit_bytes", frozenset())) == limit_bytes

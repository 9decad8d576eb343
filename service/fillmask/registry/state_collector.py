"""Metrics of the current state of the served models."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fillmask.host import memory_limit_bytes
from fillmask.registry.served_model import ServedModel


class StateCollector(Collector):
    """Collector of metrics without a history, which reads the models at each scrape.

    Args:
        models: function that returns the served models.
        not_ready_reason: function that returns the reason why the service is not ready. The reason
            is None if the service is ready.
    """

    def __init__(
        self,
        models: Callable[[], Sequence[ServedModel]],
        not_ready_reason: Callable[[], str | None],
    ) -> None:
        self._models = models
        self._not_ready_reason = not_ready_reason
        self._memory_limit_bytes = memory_limit_bytes()

    def collect(self) -> Iterable[Metric]:
        """Yield the current value of every metric."""
        models = self._models()
        failures = [self._not_ready_reason(), *(model.probe.last_failure for model in models)]
        yield GaugeMetricFamily(
            "fillmask_ready",
            "1 if the last readiness check reports a ready service, else 0.",
            value=all(failure is None for failure in failures),
        )
        yield GaugeMetricFamily(
            "fillmask_memory_limit_bytes",
            "Memory limit of the process (absent without a limit).",
            value=self._memory_limit_bytes,
        )
        yield from _of_models(models)


def _of_models(models: Sequence[ServedModel]) -> Iterable[Metric]:
    info = GaugeMetricFamily(
        "fillmask_model_info",
        "A served model, with the value 1.",
        labels=["model", "d_model", "graph", "max_tokens", "num_layers", "precision", "vocab_size"],
    )
    waiting = GaugeMetricFamily(
        "fillmask_waiting_tokens",
        "Tokens that wait or run, by lane.",
        labels=["model", "lane"],
    )
    most = GaugeMetricFamily(
        "fillmask_waiting_tokens_limit",
        "Limit on the tokens that wait or run, by lane.",
        labels=["model", "lane"],
    )
    speed = GaugeMetricFamily(
        "fillmask_tokens_per_second",
        "Recent throughput of all workers in large batches (absent before the first large batch).",
        labels=["model"],
    )
    workers = GaugeMetricFamily(
        "fillmask_workers", "Worker threads that compute batches.", labels=["model"]
    )
    for model in models:
        about, sizes, load = model.info, model.info.architecture, model.batcher.load
        info.add_metric(
            [
                model.name,
                str(sizes.d_model),
                about.graph,
                str(about.limits.max_tokens),
                str(sizes.num_layers),
                about.precision,
                str(sizes.vocab_size),
            ],
            1,
        )
        for lane, tokens in load.waiting_tokens.items():
            waiting.add_metric([model.name, lane], tokens)
        for lane, tokens in load.most_waiting_tokens.items():
            most.add_metric([model.name, lane], tokens)
        if load.tokens_per_s is not None:
            speed.add_metric([model.name], load.tokens_per_s)
        workers.add_metric([model.name], load.workers)
    return info, waiting, most, speed, workers

"""Metrics of the current state of the served models."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fillmask.host import memory_limit_bytes
from fillmask.models.served_model import ServedModel


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
    sizes = ("d_model", "graph", "max_tokens", "num_layers", "precision", "vocab_size")
    info = GaugeMetricFamily(
        "fillmask_model_info", "A served model, with the value 1.", labels=["model", *sizes]
    )
    text = "Tokens that wait or run, by lane."
    waiting = GaugeMetricFamily("fillmask_waiting_tokens", text, labels=["model", "lane"])
    text = "Limit on the tokens that wait or run, by lane."
    most = GaugeMetricFamily("fillmask_waiting_tokens_limit", text, labels=["model", "lane"])
    text = (
        "Recent throughput of all workers in large batches (absent before the first large batch)."
    )
    speed = GaugeMetricFamily("fillmask_tokens_per_second", text, labels=["model"])
    text = "Worker threads that compute batches."
    workers = GaugeMetricFamily("fillmask_workers", text, labels=["model"])
    for model in models:
        name, load, about = model.name, model.batcher.load, model.info
        values = {
            **vars(about.architecture),
            "graph": about.graph,
            "max_tokens": about.limits.max_tokens,
            "precision": about.precision,
        }
        info.add_metric([name, *(str(values[size]) for size in sizes)], 1)
        for lane, tokens in load.waiting_tokens.items():
            waiting.add_metric([name, lane], tokens)
        for lane, tokens in load.most_waiting_tokens.items():
            most.add_metric([name, lane], tokens)
        if load.tokens_per_s is not None:
            speed.add_metric([name], load.tokens_per_s)
        workers.add_metric([name], load.workers)
    return info, waiting, most, speed, workers

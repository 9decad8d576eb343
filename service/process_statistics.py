"""All that is counted in this process, apart from how it is shown."""

from collections import Counter

from service.batch_statistics import BatchStatistics
from service.request_statistics import RequestStatistics


class ProcessStatistics:
    """Plain numbers, filled where things happen and read when somebody asks.

    Attributes:
        requests: of HTTP.
        open_connections: at this moment.
        refused_connections: those ended before there was a request to answer, by reason.
        reloads: of bundles while the service runs, by outcome.
    """

    def __init__(self) -> None:
        self.requests = RequestStatistics()
        self.open_connections = 0
        self.refused_connections: Counter[str] = Counter()
        self.reloads: Counter[str] = Counter()
        self._batches: dict[str, BatchStatistics] = {}

    def of_model(self, name: str) -> BatchStatistics:
        """Those of a model; the same ones when it is loaded anew, for counters never go back."""
        return self._batches.setdefault(name, BatchStatistics())

    @property
    def batches(self) -> list[tuple[str, BatchStatistics]]:
        """Each model that there has been."""
        return list(self._batches.items())

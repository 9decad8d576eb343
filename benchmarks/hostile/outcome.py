"""Outcome of polite clients beside hostile ones, and the bars that it must meet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from benchmarks.hostile.polite_clients import LOST, Asked

LIMIT_BYTES = 512 * 2**20  # limit of the documented pod
SLOWEST_S = 1.0
RECOVERY_S = 5.0  # bar of the time until fills are answered after a flood
MB = 1_000_000


def percentile_ms(asked: list[Asked], share: float) -> float:
    """Return a percentile of the times of all requests, including those lost, in milliseconds."""
    ranked = sorted(one.took_s for one in asked)
    return 1000 * ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of one kind.

    Attributes:
        name: description of the kind.
        asked: requests of the polite clients and the probes.
        opened: number of hostile connections, 0 if unknown.
        peak_bytes: peak of the service's resident memory.
        killed: whether the service has ended.
        flood_end_s: end of the flood on the monotonic clock. None if it lasts as long as the
            polite clients.
    """

    name: str
    asked: list[Asked]
    opened: int
    peak_bytes: int
    killed: bool
    flood_end_s: float | None = None

    def of(self, *clients: str) -> list[Asked]:
        """Return the requests of some clients."""
        return [one for one in self.asked if one.client in clients]

    @property
    def fills(self) -> list[Asked]:
        """Requests of the two polite clients."""
        return self.of("keep-alive", "new")

    @property
    def probes(self) -> list[Asked]:
        """Liveness probes on the metrics port, or on the main port if there is only this one."""
        return self.of("metrics port") or self.of("live")

    @property
    def recovery_s(self) -> float:
        """Seconds from the end of the flood until all polite clients have an answer."""
        assert self.flood_end_s is not None  # noqa: S101 - only floods have a recovery
        ends = [self._first_answer_s(client, self.flood_end_s) for client in ("keep-alive", "new")]
        return max(ends) - self.flood_end_s

    def _first_answer_s(self, client: str, after_s: float) -> float:
        answered = [one.started_s + one.took_s for one in self.of(client) if one.status == 200]
        return min((end_s for end_s in answered if end_s > after_s), default=float("inf"))

    def failures(self, slowest_s: float = SLOWEST_S) -> list[str]:
        """Return the bars that the service failed.

        Args:
            slowest_s: bar of the 99th percentile of fills and of the slowest liveness probe.
        """
        found = []
        if self.killed:
            found.append("the service has ended")
        if self.peak_bytes >= LIMIT_BYTES:
            found.append(f"memory {self.peak_bytes / MB:.0f} MB")
        probes = self.probes
        if self.flood_end_s is None:
            probes = self.of("live", "metrics port")
            statuses = Counter(one.status for one in self.fills)
            if set(statuses) != {200}:
                found.append(f"statuses of fills {dict(statuses)} ({LOST} is lost)")
            if percentile_ms(self.fills, 0.99) >= slowest_s * 1000:
                found.append(f"p99 {percentile_ms(self.fills, 0.99):.0f} ms")
        elif self.recovery_s >= RECOVERY_S:
            found.append(f"fills answered {self.recovery_s:.1f} s after the flood")
        bad = [one for one in probes if one.status != 200 or one.took_s >= slowest_s]
        if bad or not probes:
            longest_s = max((one.took_s for one in bad), default=0.0)
            found.append(
                f"{len(bad)} of {len(probes)} liveness probes failed (up to {longest_s:.1f} s)"
            )
        return found

    def line(self) -> str:
        """Return one line, with p50, p99 and maximum of the fills, and the slowest probes."""
        statuses = Counter(one.status for one in self.fills)
        others = len(self.fills) - statuses[200] - statuses[LOST]
        kept, new = (self._milliseconds(client, 0.5, 0.99, 1) for client in ("keep-alive", "new"))
        live, metrics = (self._milliseconds(client, 1) for client in ("live", "metrics port"))
        retried = sum(one.retried for one in self.fills)
        parts = [
            f"keep-alive {kept}, new {new} ms",
            f"{statuses[200]} answered, {statuses[LOST]} lost, {others} other, {retried} retried",
            f"live {live}, {metrics} ms",
            f"{self.peak_bytes / MB:.0f} MB",
            f"{self.opened or '-'} opened",
        ]
        if self.flood_end_s is not None:
            parts.append(f"recovery {self.recovery_s:.1f} s")
        return "; ".join(parts)

    def _milliseconds(self, client: str, *shares: float) -> str:
        return " ".join(f"{percentile_ms(self.of(client), share):.0f}" for share in shares)

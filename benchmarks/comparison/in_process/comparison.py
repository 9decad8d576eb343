"""In-process comparison, in which all variants take turns in each round."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.comparison.in_process.throughput import Setting, measure, variants
from benchmarks.comparison.results import SizeResults


class InProcessComparison:
    """In-process comparison of one model size.

    Args:
        size: name of the model size.
        cpus: CPUs with one thread each.
        seconds: duration of each measurement.
        results: object to which the methods add figures.
    """

    def __init__(
        self, size: str, cpus: Sequence[int], seconds: float, results: SizeResults
    ) -> None:
        self._size = size
        self._cpus = cpus
        self._seconds = seconds
        self._results = results
        self._chosen: dict[str, Setting] = {}

    def choose_settings(self) -> None:
        """Select the fastest setting of each variant in a trial."""
        for variant, settings in variants().items():
            speeds = {s: self._measure(variant, s) for s in settings if len(settings) > 1}
            self._chosen[variant] = max(speeds, key=speeds.__getitem__, default=settings[0])

    def round(self) -> None:
        """Measure every variant once."""
        for variant, setting in self._chosen.items():
            texts_per_s = self._measure(variant, setting)
            self._results.in_process.setdefault(variant, []).append(texts_per_s)

    def _measure(self, variant: str, setting: Setting) -> float:
        arguments = (self._size, variant, setting, self._cpus, self._seconds)
        try:
            texts_per_s = measure(*arguments)
        except subprocess.TimeoutExpired:
            # OpenVINO in bf16 has hung once. That must not cost an hour's other measurements.
            print(f"{self._size} in-process: {variant} hangs, second try", file=sys.stderr)
            texts_per_s = measure(*arguments)
        print(
            f"{self._size} in-process: {variant}, {setting.label}: {texts_per_s:.1f} texts/s",
            file=sys.stderr,
        )
        return texts_per_s

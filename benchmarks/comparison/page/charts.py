"""Charts of docs/performance.md."""

from __future__ import annotations

import statistics
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.comparison.http.comparison import median_cell
from benchmarks.comparison.in_process.scaling import Point, Scaling
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.workspace import PRECISIONS

_OURS, _OTHERS = "#c44e1a", "#5b7083"
_DPI = 150


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw the requests/s at each concurrency and the peak memory of each model size."""
    concurrencies = list(comparison.null_server)
    rows = [*concurrencies, None]
    figure = Figure(figsize=(6.5 * len(comparison.sizes), 3 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(comparison.sizes), squeeze=False)
    for column, (size, results) in enumerate(comparison.sizes.items()):
        for row, concurrency in enumerate(rows):
            axes: Axes = grid[row][column]
            if concurrency is None:
                _bars(axes, _peak_rss_mb(results))
                axes.set_title(f"{size}: peak memory, MB")
            else:
                _bars(axes, _requests_per_s(results, concurrency))
                axes.set_title(f"{size}: requests/s, {concurrency} at a time")
    figure.savefig(path, dpi=_DPI)


def draw_scaling(scaling: Scaling, path: Path) -> None:
    """Draw the memory over requests and the time per text by length, masks and batch size."""
    curves = scaling.curves
    figure = Figure(figsize=(13, 7), layout="constrained")
    by_tokens, by_masks, by_texts, memory = figure.subplots(2, 2).ravel()
    _curve(by_tokens, curves.by_tokens, "tokens of a text")
    _curve(by_masks, curves.by_masks, "masks of a text")
    _curve(by_texts, curves.by_texts, "texts in a batch")
    requests, resident_bytes = zip(*scaling.memory.samples, strict=True)
    memory.plot(requests, [size / 1e6 for size in resident_bytes], color=_OURS)
    memory.set(xlabel="requests of random shapes", ylabel="resident MB")
    memory.set_ylim(0, 1.1 * max(resident_bytes) / 1e6)
    figure.savefig(path, dpi=_DPI)


def _requests_per_s(results: SizeResults, concurrency: int) -> dict[str, float]:
    return {
        name: median_cell(visits, concurrency).requests_per_s
        for name, visits in results.visits.items()
    }


def _peak_rss_mb(results: SizeResults) -> dict[str, float]:
    return {
        name: statistics.median(visit.peak_rss_bytes for visit in visits) / 1e6
        for name, visits in results.visits.items()
    }


def _bars(axes: Axes, values: dict[str, float]) -> None:
    names = list(values)[::-1]  # puts the first bar at the top
    colors = [_OURS if name.startswith("fillmask") else _OTHERS for name in names]
    bars = axes.barh(names, [values[name] for name in names], color=colors)
    axes.bar_label(bars, fmt="%.0f", padding=3)
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(b=False)


def _curve(axes: Axes, points: list[Point], label: str) -> None:
    places = [point.at for point in points]
    for precision, color in zip(PRECISIONS, (_OTHERS, _OURS), strict=True):
        axes.plot(places, [p.ms[precision] for p in points], "o-", color=color, label=precision)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(places, [str(place) for place in places])
    axes.set(xlabel=label, ylabel="ms per text, one thread")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()

"""Block of the comparison in docs/performance.md, and its picture."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import generated_block
from benchmarks.comparison.contenders import busy
from benchmarks.comparison.contenders.contender import Contender
from benchmarks.comparison.contenders.fillmask import INT8
from benchmarks.comparison.one_at_a_time import LENGTHS_TOKENS, best_by_length
from benchmarks.comparison.over_http import TRIAL_CONCURRENCY
from benchmarks.comparison.results import Cell, Comparison, SizeResults, Visit
from benchmarks.comparison.workspace import ROOT, Workspace
from benchmarks.generated_block import table

PAGE = ROOT / "docs" / "performance.md"
_OURS, _OTHERS = "#c44e1a", "#5b7083"
_LATENCY = (
    "One client sends one text at a time, so all CPUs can compute it. Cells are median "
    "milliseconds over HTTP, in each contender's fastest setting for that length."
)


def write_page(comparison: Comparison, page: Path = PAGE) -> None:
    """Replace the measured block of the page, and the picture beside it."""
    parts = []
    for size, results in comparison.sizes.items():
        parts += [f"## {size} over HTTP: {results.parameters}", _servers(size, comparison)]
    parts += ["## One text at a time", _LATENCY, _latency(comparison)]
    parts += ["## Without HTTP", _in_process(comparison), _shares(comparison)]
    parts += ["## Settings", "\n".join(f"- {line}" for line in _settings(comparison))]
    parts += ["## The machine", _machine(comparison)]
    generated_block.write(page, "comparison/page", "\n\n".join(parts))
    _draw(comparison, page.parent / "performance.png")


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return the median over all rounds of the ratio between two contenders' figures.

    A temporarily slow machine affects both figures of a round, so their ratio hardly changes.
    """
    pairs = zip(numerators, denominators, strict=True)
    return statistics.median(above / below for above, below in pairs)


def _rows(size: str, comparison: Comparison) -> list[tuple[Contender, list[Visit]]]:
    """Return the measured contenders with their visits."""
    visits = comparison.sizes[size].visits
    known = busy(Workspace(size), comparison.cpus)
    return [(one, visits[one.name]) for one in known if one.name in visits]


def _servers(size: str, comparison: Comparison) -> str:
    results = comparison.sizes[size]
    concurrencies = sorted(results.visits[INT8][0].cells)

    def rows() -> Iterator[list[str]]:
        ours = _at_trial(results, INT8)
        for contender, visits in _rows(size, comparison):
            at_trial = _median(visits, TRIAL_CONCURRENCY)
            theirs = _at_trial(results, contender.name)
            installed_bytes = comparison.installed_bytes.get(contender.name)
            spread = (max(theirs) - min(theirs)) / statistics.median(theirs)
            yield [
                contender.name,
                *(f"{_median(visits, n).requests_per_s:.1f}" for n in concurrencies),
                f"{median_ratio(ours, theirs):.2f}x",
                f"{100 * spread:.0f} %",
                f"{at_trial.p50_ms:.1f} / {at_trial.p99_ms:.1f}",
                f"{max(visit.peak_rss_bytes for visit in visits) / 1e6:.0f}",
                f"{statistics.median(visit.ready_s for visit in visits):.2f}",
                "not measured" if installed_bytes is None else f"{installed_bytes / 1e6:.0f}",
                f"{100 * statistics.median(visit.agreement for visit in visits):.1f} %",
            ]

    header = [
        "contender",
        *(f"requests/s at {number}" for number in concurrencies),
        f"{INT8} / this, at {TRIAL_CONCURRENCY}",
        f"spread of rounds, at {TRIAL_CONCURRENCY}",
        f"p50 / p99 ms at {TRIAL_CONCURRENCY}",
        *("peak RSS MB", "start to ready s", "installed MB", "same best token"),
    ]
    return table(header, rows())


def _median(visits: list[Visit], concurrency: int) -> Cell:
    return Cell.median([visit.cells[concurrency] for visit in visits])


def _at_trial(results: SizeResults, contender: str) -> list[float]:
    """Return the requests/s of each round at the concurrency of the trial."""
    return [visit.cells[TRIAL_CONCURRENCY].requests_per_s for visit in results.visits[contender]]


def _latency(comparison: Comparison) -> str:
    header = [f"{size}: {n} tokens" for size in comparison.sizes for n in LENGTHS_TOKENS]
    cells: dict[str, list[str]] = {}
    for results in comparison.sizes.values():
        for contender, by_label in results.latency_ms.items():
            best = best_by_length(by_label).values()
            cells.setdefault(contender, []).extend(f"{ms:.1f}" for _, ms in best)
    return table(["contender", *header], [[name, *row] for name, row in cells.items()])


def _in_process(comparison: Comparison) -> str:
    header = ["variant"]
    cells: dict[str, list[str]] = {}
    for size, results in comparison.sizes.items():
        header += [f"{size}: texts/s", f"{INT8} / this"]
        ours = results.in_process[INT8]
        for variant, texts_per_s in results.in_process.items():
            ratio = median_ratio(ours, texts_per_s)
            figures = (f"{statistics.median(texts_per_s):.1f}", f"{ratio:.2f}x")
            cells.setdefault(variant, []).extend(figures)
    return table(header, [[name, *row] for name, row in cells.items()])


def _shares(comparison: Comparison) -> str:
    shares = [
        f"{100 * median_ratio(_at_trial(results, INT8), results.in_process[INT8]):.0f} % ({size})"
        for size, results in comparison.sizes.items()
    ]
    return (
        f"Over HTTP with {TRIAL_CONCURRENCY} clients, {INT8} reaches {' and '.join(shares)} "
        "of its throughput without HTTP."
    )


def _settings(comparison: Comparison) -> Iterator[str]:
    sizes = list(comparison.sizes)
    for contender, _ in _rows(sizes[0], comparison):
        chosen = {size: comparison.sizes[size].chosen.get(contender.name, "") for size in sizes}
        if len(set(chosen.values())) == 1:
            setting = chosen[sizes[0]]
        else:
            setting = ", ".join(f"{label} ({size})" for size, label in chosen.items())
        yield f"**{contender.name}**: {contender.note} Measured with {setting}."


def _machine(comparison: Comparison) -> str:
    heaviest = max(
        cell.client_cpu_us * cell.requests_per_s / 1e6
        for results in comparison.sizes.values()
        for visits in results.visits.values()
        for visit in visits
        for cell in visit.cells.values()
    )
    return (
        f"Measured on {comparison.date} in {comparison.rounds} rounds of {comparison.seconds:g} s. "
        f"{'; '.join(comparison.machine)}. The load generator took at most {100 * heaviest:.1f} % "
        "of one CPU."
    )


def _draw(comparison: Comparison, path: Path) -> None:
    """Draw the requests/s at each concurrency and the peak memory of each model size."""
    first = next(iter(comparison.sizes.values()))
    concurrencies = sorted(first.visits[INT8][0].cells)
    height = 3 * (len(concurrencies) + 1)
    figure = Figure(figsize=(6.5 * len(comparison.sizes), height), layout="constrained")
    grid = figure.subplots(len(concurrencies) + 1, len(comparison.sizes), squeeze=False)
    for column, (size, results) in enumerate(comparison.sizes.items()):
        for row, number in enumerate(concurrencies):
            speeds = {
                name: _median(visits, number).requests_per_s
                for name, visits in results.visits.items()
            }
            _bars(grid[row][column], speeds, f"{size}: requests/s, {number} at a time")
        memory_mb = {
            name: statistics.median(visit.peak_rss_bytes for visit in visits) / 1e6
            for name, visits in results.visits.items()
        }
        _bars(grid[-1][column], memory_mb, f"{size}: peak memory, MB")
    figure.savefig(path, dpi=150)


def _bars(axes: Axes, values: dict[str, float], title: str) -> None:
    names = list(values)[::-1]  # puts the first bar at the top
    colors = [_OURS if name.startswith("fillmask") else _OTHERS for name in names]
    bars = axes.barh(names, [values[name] for name in names], color=colors)
    axes.bar_label(bars, fmt="%.0f", padding=3)
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(b=False)
    axes.set_title(title)

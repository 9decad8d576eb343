"""Block of the comparison in docs/performance.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.comparison.http.comparison import TRIAL_CONCURRENCY, median_cell
from benchmarks.comparison.http.contenders import OURS_INT8, Contender, contenders
from benchmarks.comparison.http.latency import LENGTHS_TOKENS, best_by_length
from benchmarks.comparison.page.figures import median_ratio, spread
from benchmarks.comparison.page.table import table
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.workspace import Workspace

NAME = "comparison/page/comparison_section"
_LATENCY = (
    "One client sends one text at a time, so all CPUs can compute it. Cells are median "
    "milliseconds over HTTP, in each contender's fastest setting for that length."
)


def comparison_section(comparison: Comparison) -> str:
    """Return the block as Markdown."""
    parts = []
    for size, results in comparison.sizes.items():
        parts += [f"## {size} over HTTP: {results.parameters}", _servers(size, comparison)]
    parts += ["## One text at a time", _LATENCY, _latency(comparison)]
    parts += ["## Without HTTP", _in_process(comparison), _shares(comparison)]
    parts += ["## Settings", "\n".join(f"- {line}" for line in _settings(comparison))]
    parts += ["## The machine", _machine(comparison)]
    return "\n\n".join(parts)


def _present(size: str, comparison: Comparison) -> list[Contender]:
    known = contenders(Workspace(size), comparison.cpus)
    return [c for c in known if c.name in comparison.sizes[size].visits]


def _servers(size: str, comparison: Comparison) -> str:
    results = comparison.sizes[size]
    concurrencies = sorted(results.visits[OURS_INT8][0].cells)

    def rows() -> Iterator[list[str]]:
        ours = _at_trial(results, OURS_INT8)
        for contender in _present(size, comparison):
            visits = results.visits[contender.name]
            cells = {number: median_cell(visits, number) for number in concurrencies}
            theirs = _at_trial(results, contender.name)
            installed_bytes = comparison.installed_bytes.get(contender.environment)
            yield [
                contender.name,
                *(f"{cell.requests_per_s:.1f}" for cell in cells.values()),
                f"{median_ratio(ours, theirs):.2f}x",
                f"{100 * spread(theirs):.0f} %",
                "{0.p50_ms:.1f} / {0.p99_ms:.1f}".format(cells[TRIAL_CONCURRENCY]),
                f"{max(visit.peak_rss_bytes for visit in visits) / 1e6:.0f}",
                f"{statistics.median(visit.ready_s for visit in visits):.2f}",
                "not measured" if installed_bytes is None else f"{installed_bytes / 1e6:.0f}",
                f"{100 * statistics.median(visit.agreement for visit in visits):.1f} %",
            ]

    header = [
        "contender",
        *(f"requests/s at {number}" for number in concurrencies),
        f"{OURS_INT8} / this, at {TRIAL_CONCURRENCY}",
        f"spread of rounds, at {TRIAL_CONCURRENCY}",
        f"p50 / p99 ms at {TRIAL_CONCURRENCY}",
        *("peak RSS MB", "start to ready s", "installed MB", "same best token"),
    ]
    return table(header, rows())


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
        header += [f"{size}: texts/s", f"{OURS_INT8} / this"]
        ours = results.in_process[OURS_INT8]
        for variant, texts_per_s in results.in_process.items():
            cells.setdefault(variant, []).extend(
                (
                    f"{statistics.median(texts_per_s):.1f}",
                    f"{median_ratio(ours, texts_per_s):.2f}x",
                )
            )
    return table(header, [[name, *row] for name, row in cells.items()])


def _shares(comparison: Comparison) -> str:
    shares = [
        f"{100 * median_ratio(_at_trial(results, OURS_INT8), results.in_process[OURS_INT8]):.0f} % "
        f"({size})"
        for size, results in comparison.sizes.items()
    ]
    return (
        f"Over HTTP with {TRIAL_CONCURRENCY} clients, {OURS_INT8} reaches {' and '.join(shares)} "
        "of its throughput without HTTP."
    )


def _settings(comparison: Comparison) -> Iterator[str]:
    sizes = {size: _present(size, comparison) for size in comparison.sizes}
    for contender in next(iter(sizes.values())):
        chosen = {
            size: comparison.sizes[size].chosen[contender.name]
            for size, present in sizes.items()
            if contender.name in {c.name for c in present}
        }
        if len(set(chosen.values())) == 1:
            setting = next(iter(chosen.values()))
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
    null = comparison.null_server[TRIAL_CONCURRENCY]
    return (
        f"Measured on {comparison.date} in {comparison.rounds} rounds of {comparison.seconds:g} s. "
        f"{'; '.join(comparison.machine)}. The load generator took at most {100 * heaviest:.1f} % "
        f"of one CPU, and sent {null.requests_per_s:.0f} requests/s to a server that does nothing "
        f"({TRIAL_CONCURRENCY} clients)."
    )

"""The first part of docs/performance.md: the comparison."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.comparison.contenders import OURS_FP32, OURS_INT8, Contender, contenders
from benchmarks.comparison.figures import median_ratio, spread
from benchmarks.comparison.http_comparison import TRIAL_CONCURRENCY, median_cell
from benchmarks.comparison.in_process import SESSION_ALONE
from benchmarks.comparison.operations import FORMULA
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.table import table
from benchmarks.comparison.workspace import Workspace

OPERATORS_SHOWN = 12
_INTRODUCTION = """\
# Performance

Every contender on the same weights, texts and CPUs, in turns. Measured by `make comparison`, which
needs `wrk` (`apt-get install wrk` on Debian and Ubuntu) and a quiet machine; it writes this page.

![Requests per second and memory of every contender](performance.png)
"""
_FAIRNESS = """\
- A contender answers `POST /fill-mask` with the five best tokens of each mask, one text a request,
  in Hugging Face's format. Each round starts it anew, sends every text once, warms it up, and
  measures it at each concurrency; then the next one takes its turn. Figures are medians over the
  rounds, ratios are medians of the ratios within a round.
- The minimal application is FastAPI, a thread pool and one text a run: it has no batcher. Its
  tokenizing and its answers are this project's own code, except for the pipelines.
- Correctness before speed: contenders in fp32 must give transformers' best token for every mask
  (log-probabilities within 1e-3 are a tie), or the comparison stops. For the others the share is in
  the table. The weights are random in part or throughout, so that share says less about quality
  than it would on a trained model: random logits lie close together. An answer other than 200 also
  stops the comparison.
- The load is closed: each connection sends its next request when it has its answer, so latencies
  are those of a server that is never more than that far behind.
- uvloop and httptools are installed for all.
- Memory is VmHWM of all processes of a contender added up; pages that they share count in each.
- Installed size is a fresh virtual environment with what the contender needs and the build of torch
  named above; ours has its built-in model in it, the others have no model.
- In-process, texts are tokenized beforehand and come in the same order. Ours pack batches by tokens
  as the service does, and rank and split; the others run to their logits, ranking left out in their
  favour, on as many threads as CPUs.
"""


def comparison_section(comparison: Comparison) -> str:
    """The part's Markdown."""
    parts = [
        _INTRODUCTION,
        "## The machine",
        _list([f"measured on {comparison.date}", *comparison.machine]),
    ]
    for size, results in comparison.sizes.items():
        known = contenders(Workspace(size), comparison.cpus)
        present = [c for c in known if c.name in results.visits]
        parts += [f"## {size}: {results.parameters}", _texts(results), "### Over HTTP"]
        parts += [_speeds(present, results), _footprints(present, results, comparison)]
        parts += ["### In-process", _in_process(results, comparison), _against_http(results)]
        parts += ["### Where the time goes", _operators(results)]
        parts += ["### Settings", _list(_settings(present, results))]
    parts += ["## How it was measured", _FAIRNESS + _list(_load_generator(comparison))]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _texts(results: SizeResults) -> str:
    return (
        f"{results.texts} texts of {results.mean_tokens:.1f} tokens and {results.mean_masks:.2f} "
        "masks on average (`benchmarks/comparison/TEXTS.md`)."
    )


def _speeds(present: list[Contender], results: SizeResults) -> str:
    concurrencies = sorted(results.visits[present[0].name][0].cells)

    def rows() -> Iterator[list[str]]:
        ours = [v.cells[TRIAL_CONCURRENCY].requests_per_s for v in results.visits[OURS_INT8]]
        for contender in present:
            visits = results.visits[contender.name]
            cells = [median_cell(visits, concurrency) for concurrency in concurrencies]
            theirs = [visit.cells[TRIAL_CONCURRENCY].requests_per_s for visit in visits]
            yield [
                contender.name,
                *(f"{cell.requests_per_s:.1f}" for cell in cells),
                *(f"{cell.p50_ms:.1f} / {cell.p99_ms:.1f}" for cell in cells),
                f"{median_ratio(ours, theirs):.2f}x",
                f"{100 * spread(theirs):.0f} %",
            ]

    header = [
        "contender",
        *(f"requests/s at {concurrency}" for concurrency in concurrencies),
        *(f"p50 / p99 ms at {concurrency}" for concurrency in concurrencies),
        f"{OURS_INT8} / this, at {TRIAL_CONCURRENCY}",
        f"spread of rounds, at {TRIAL_CONCURRENCY}",
    ]
    return table(header, rows())


def _footprints(present: list[Contender], results: SizeResults, comparison: Comparison) -> str:
    def rows() -> Iterator[list[str]]:
        for contender in present:
            visits = results.visits[contender.name]
            installed_bytes = comparison.installed_bytes.get(contender.environment)
            yield [
                contender.name,
                f"{max(visit.peak_rss_bytes for visit in visits) / 1e6:.0f}",
                f"{statistics.median(visit.ready_s for visit in visits):.2f}",
                "not measured" if installed_bytes is None else f"{installed_bytes / 1e6:.0f}",
                f"{100 * statistics.median(visit.agreement for visit in visits):.1f} %",
            ]

    header = ["contender", "peak RSS MB", "start to ready s", "installed MB", "same best token"]
    return table(header, rows())


def _in_process(results: SizeResults, comparison: Comparison) -> str:
    peak = comparison.peak

    def rows() -> Iterator[list[str]]:
        ours = results.in_process[OURS_INT8]
        for variant, texts_per_s in results.in_process.items():
            median = statistics.median(texts_per_s)
            share = median * results.operations_per_text / (_peak_gops(variant, comparison) * 1e9)
            yield [
                variant,
                f"{median:.1f}",
                "" if "bf16" in variant else f"{100 * share:.0f} %",
                f"{median_ratio(ours, texts_per_s):.2f}x",
                results.in_process_chosen[variant],
            ]

    header = ["variant", "texts/s", "of the matrix peak", f"{OURS_INT8} / this", "setting"]
    bound = peak.int8_gops * 1e9 / results.operations_per_text
    return (
        f"{table(header, rows())}\n\n"
        f"The peak is {peak.int8_gops:.0f} GOPS in int8 and {peak.fp32_gops:.0f} in fp32: the best "
        f"of several large products in onnxruntime, on all {comparison.cpus} CPUs at once. A text "
        f"must have {results.operations_per_text / 1e6:.0f} million operations on average, so int8 "
        f"is bound to {bound:.0f} texts/s. Counted are the products of the layers, {FORMULA}; "
        "logits that nobody asked for do not count. int8 variants are held against the int8 peak, "
        "the others against fp32."
    )


def _peak_gops(variant: str, comparison: Comparison) -> float:
    return comparison.peak.int8_gops if "int8" in variant else comparison.peak.fp32_gops


def _against_http(results: SizeResults) -> str:
    sentences = []
    for ours in (OURS_INT8, OURS_FP32):
        visits = results.visits[ours]
        in_process = results.in_process[ours]
        shares = {
            concurrency: median_ratio(
                [visit.cells[concurrency].requests_per_s for visit in visits], in_process
            )
            for concurrency in sorted(visits[0].cells)
        }
        words = ", ".join(f"{100 * share:.0f} % at {at}" for at, share in shares.items())
        alone = median_ratio(in_process, results.in_process[ours + SESSION_ALONE])
        sentences.append(
            f"Over HTTP, {ours} has this share of its in-process rate: {words}. In-process, with "
            f"packing and splitting, it has {100 * alone:.0f} % of the rate of the session alone."
        )
    return "\n".join(sentences)


def _operators(results: SizeResults) -> str:
    """The most expensive operators, and what all others take together."""
    total_us = sum(results.operator_us.values())
    shown = dict(list(results.operator_us.items())[:OPERATORS_SHOWN])
    shown["all others"] = total_us - sum(shown.values())
    rows = (
        [operator, f"{us:.0f}", f"{100 * us / total_us:.0f} %"] for operator, us in shown.items()
    )
    return (
        f"{OURS_INT8}, onnxruntime's own profile on one thread, which slows small operators down a "
        "little. The int8 products are `MatMulIntegerToFloat`; the rest is what keeps a scale for "
        "every token, and what is computed in float32.\n\n"
        f"{table(['operator', 'us a text', 'share'], rows)}"
    )


def _settings(present: list[Contender], results: SizeResults) -> Iterator[str]:
    for contender in present:
        yield f"**{contender.name}**: {contender.note} Setting: {results.chosen[contender.name]}."


def _load_generator(comparison: Comparison) -> Iterator[str]:
    heaviest = max(
        cell.client_cpu_us * cell.requests_per_s / 1e6
        for results in comparison.sizes.values()
        for visits in results.visits.values()
        for visit in visits
        for cell in visit.cells.values()
    )
    alone = ", ".join(
        f"{cell.requests_per_s:.0f} requests/s at {concurrency} "
        f"({cell.client_cpu_us:.0f} us of its own CPU time for each)"
        for concurrency, cell in comparison.null_server.items()
    )
    yield (
        f"The load generator is not the bottleneck: against a server that does nothing it makes "
        f"{alone}. In the comparison it took at most {100 * heaviest:.1f} % of one CPU."
    )
    yield f"{comparison.rounds} rounds of {comparison.seconds:g} s for each figure."


def _list(lines: Iterator[str] | list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)

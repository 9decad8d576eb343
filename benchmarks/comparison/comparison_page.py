"""First part of docs/performance.md, with the comparison."""

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

`make comparison` measures every contender with the same weights, texts and CPUs, in turns, and
writes this page. It needs `wrk` (`apt-get install wrk` on Debian and Ubuntu) and a quiet machine.

![Requests per second and memory of every contender](performance.png)
"""
_FAIRNESS = """\
- A contender answers `POST /fill-mask` in Hugging Face's format, with the five best tokens of each
  mask. A request has one text.
- Each round starts a contender again, sends every text once, warms it up and measures it at each
  concurrency. Then the next contender starts. Columns such as "requests/s at 8" name the number
  of clients. Figures are medians over the rounds. Ratios are medians of the ratios within a round.
- The minimal application consists of FastAPI and a thread pool. It computes one text per run and
  has no batcher. It tokenizes texts and writes responses with the code of this project. The
  pipelines use their own code for both.
- The comparison checks correctness before speed. It stops if a contender in fp32 does not return
  the best token of transformers for every mask. Log-probabilities within 1e-3 are a tie. It also
  stops at a status other than 200.
- For the contenders in other precisions, the tables show the share of masks with the same best
  token. Some or all weights are random. Random logits are close together, so the share says less
  about quality than the share of a trained model.
- The load is a closed loop. Each connection sends its next request after the response to the
  previous one. Therefore a server is never behind by more than one request per connection.
- Every contender has uvloop and httptools installed.
- Memory is the sum of VmHWM over all processes of a contender. Pages that processes share count in
  each process.
- Installed size is that of a fresh virtual environment with the dependencies of the contender and
  the build of torch named above. The environment of fillmask includes its built-in model. The
  others include no model.
- In-process, all variants get the same tokenized texts in the same order. They use as many threads
  as CPUs. Like the service, fillmask packs batches by tokens, ranks the tokens and splits the
  results. The others compute only logits. The missing ranking favours them.
"""


def comparison_section(comparison: Comparison) -> str:
    """Return the section about the comparison as Markdown."""
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
        f"The requests have {results.texts} texts with {results.mean_tokens:.1f} tokens and "
        f"{results.mean_masks:.2f} masks on average (`benchmarks/comparison/TEXTS.md`)."
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
        f"The peak is {peak.int8_gops:.0f} GOPS in int8 and {peak.fp32_gops:.0f} GOPS in fp32. It "
        "is the highest rate of several large matrix products in onnxruntime, on all "
        f"{comparison.cpus} CPUs at once. A text needs {results.operations_per_text / 1e6:.0f} "
        f"million operations on average, so {bound:.0f} texts/s is the limit of int8. The count "
        f"includes only the necessary matrix products: {FORMULA}. It excludes logits at positions "
        "without a mask. The table compares int8 variants with the int8 peak, and the others with "
        "the fp32 peak."
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
            f"Over HTTP, {ours} reaches this share of its in-process rate, by number of clients: "
            f"{words}. In-process, with packing and splitting, it reaches {100 * alone:.0f} % of "
            "the rate of the session alone."
        )
    return "\n".join(sentences)


def _operators(results: SizeResults) -> str:
    """Format the times of the most expensive operators and of all others together."""
    total_us = sum(results.operator_us.values())
    shown = dict(list(results.operator_us.items())[:OPERATORS_SHOWN])
    shown["all others"] = total_us - sum(shown.values())
    rows = (
        [operator, f"{us:.0f}", f"{100 * us / total_us:.0f} %"] for operator, us in shown.items()
    )
    return (
        f"The table is onnxruntime's own profile of {OURS_INT8} on one thread. The profiler slows "
        "small operators down a little. `MatMulIntegerToFloat` computes the int8 products. The "
        "other operators compute a scale for every token and the float32 parts of the model.\n\n"
        f"{table(['operator', 'us per text', 'share'], rows)}"
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
        f"({cell.client_cpu_us:.0f} us of its own CPU time per request)"
        for concurrency, cell in comparison.null_server.items()
    )
    yield (
        "The load generator is not the bottleneck. Against a server without any work it sends, "
        f"by number of clients, {alone}. In the comparison it used at most {100 * heaviest:.1f} % "
        "of one CPU."
    )
    yield f"Each figure comes from {comparison.rounds} rounds of {comparison.seconds:g} s."


def _list(lines: Iterator[str] | list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)

"""Section about the comparison in docs/performance.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.comparison.http.comparison import TRIAL_CONCURRENCY, median_cell
from benchmarks.comparison.http.contenders import OURS_FP32, OURS_INT8, Contender, contenders
from benchmarks.comparison.in_process.operations import FORMULA
from benchmarks.comparison.in_process.throughput import SESSION_ALONE
from benchmarks.comparison.page.figures import median_ratio, spread
from benchmarks.comparison.page.table import table
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.workspace import Workspace

OPERATORS_SHOWN = 12
_SYMBOLS = (
    "A text has T tokens and m masks. The model has the width D, the feed-forward width F and V "
    "vocabulary entries."
)
_INTRODUCTION = """\
# Performance

`make comparison` measures fillmask and other servers with the same weights, texts and CPUs. It then
writes this page, which calls each measured server a contender. The command needs `wrk`
(`apt-get install wrk` on Debian and Ubuntu) and a machine without other load.

![Requests per second and memory of every contender](performance.png)
"""
_FAIRNESS = """\
- A contender answers `POST /fill-mask` in Hugging Face's format, with the five best tokens of each
  mask. A request has one text.
- In each round the comparison measures the contenders one after the other. It starts a contender,
  sends every text once, warms the contender up and measures its requests/s at each number of
  clients.
- The number in a column such as "requests/s at 8" is the number of clients. Speeds and latencies
  are medians over the rounds. The ratio "fillmask int8 / this" is the median of the ratios in the
  single rounds. The spread of rounds is the highest requests/s of a round minus the lowest, as a
  share of the median.
- The FastAPI application of several contenders computes one text per run and has no batcher. It
  tokenizes texts and writes responses with the code of this project. The contenders with the
  fill-mask pipeline use transformers' code for both steps.
- The comparison checks correctness before speed. It stops if a contender in fp32 does not return
  the best token of transformers for every mask. Tokens whose log-probabilities differ by at most
  1e-3 nats count as equal, because float32 sums are inexact. The comparison also stops if a
  response has a status other than 200.
- The column "same best token" shows the share of masks for which a contender returns the best token
  of transformers. The model minilm has a random head. The other models have only random
  weights. Random weights give logits close together, so this share says less about quality than
  with trained weights.
- The load is a closed loop. Each connection sends its next request after the response to the
  previous one. Therefore at most one request per connection waits for a server.
- Every contender has uvloop and httptools installed.
- Peak RSS is the sum of VmHWM over all processes of a contender. Pages that processes share count
  in each process.
- The installed size is the size of a fresh virtual environment with the dependencies of the
  contender. The build of torch is the build in the section "The machine". The environment of
  fillmask includes its built-in model. The other environments include no model.
- In-process, all variants get the same tokenized texts in the same order. They use as many threads
  as CPUs. Like the service, fillmask packs batches by tokens, ranks the tokens and splits the
  results. The other variants compute only logits and therefore save the time for the ranking.
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
    parts += ["## Method of measurement", _FAIRNESS + _list(_load_generator(comparison))]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _texts(results: SizeResults) -> str:
    return (
        f"Each request has one of {results.texts} texts, which have {results.mean_tokens:.1f} "
        f"tokens and {results.mean_masks:.2f} masks on average (`benchmarks/comparison/TEXTS.md`)."
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
        f"The matrix peak of the {comparison.cpus} CPUs together is {peak.int8_gops:.0f} GOPS in "
        f"int8 and {peak.fp32_gops:.0f} GOPS in fp32. The peak is the highest rate that "
        "onnxruntime reaches in several large matrix products. A text needs "
        f"{results.operations_per_text / 1e6:.0f} million operations on average. At the int8 peak "
        f"the CPUs can therefore compute {bound:.0f} texts/s. The number of operations includes "
        f"only the necessary matrix products: {FORMULA}. {_SYMBOLS} The number of operations "
        'excludes logits at positions without a mask. The column "of the matrix peak" relates int8 '
        "variants to the int8 peak and fp32 variants to the fp32 peak."
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
        words = ", ".join(
            f"{100 * share:.0f} % with {_clients(number)}" for number, share in shares.items()
        )
        alone = median_ratio(in_process, results.in_process[ours + SESSION_ALONE])
        sentences.append(
            f"Over HTTP, {ours} reaches the following shares of its in-process throughput: "
            f"{words}. The in-process throughput of {ours} includes packing batches and "
            f"splitting results. It is {100 * alone:.0f} % of the throughput of the onnxruntime "
            "session alone."
        )
    return "\n\n".join(sentences)


def _clients(number: int) -> str:
    return "1 client" if number == 1 else f"{number} clients"


def _operators(results: SizeResults) -> str:
    """Format the times of the most expensive operators and of all others together."""
    total_us = sum(results.operator_us.values())
    shown = dict(list(results.operator_us.items())[:OPERATORS_SHOWN])
    shown["all others"] = total_us - sum(shown.values())
    rows = (
        [operator, f"{us:.0f}", f"{100 * us / total_us:.0f} %"] for operator, us in shown.items()
    )
    return (
        f"The table shows onnxruntime's own profile of {OURS_INT8} on one thread. The profiler "
        "slows small operators down a little. `MatMulIntegerToFloat` computes the int8 products. "
        "The other operators compute a scale for every token and the float32 parts of the "
        "model.\n\n"
        f"{table(['operator', 'us per text', 'share'], rows)}"
    )


def _settings(present: list[Contender], results: SizeResults) -> Iterator[str]:
    for contender in present:
        setting = results.chosen[contender.name]
        yield f"**{contender.name}**: {contender.note} The measured configuration has {setting}."


def _load_generator(comparison: Comparison) -> Iterator[str]:
    heaviest = max(
        cell.client_cpu_us * cell.requests_per_s / 1e6
        for results in comparison.sizes.values()
        for visits in results.visits.values()
        for visit in visits
        for cell in visit.cells.values()
    )
    alone = ", ".join(
        f"{cell.requests_per_s:.0f} requests/s with {_clients(concurrency)} "
        f"({cell.client_cpu_us:.0f} us of CPU time per request)"
        for concurrency, cell in comparison.null_server.items()
    )
    yield (
        "The load generator is not the bottleneck. To a server that does no work, it sends "
        f"{alone}. In the comparison the load generator uses at most {100 * heaviest:.1f} % of one "
        "CPU."
    )
    yield (
        f"The comparison has {comparison.rounds} rounds. In each round the measurement of one "
        f"contender takes {comparison.seconds:g} s per number of clients."
    )


def _list(lines: Iterator[str] | list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)

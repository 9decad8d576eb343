"""Section about the comparison in docs/performance.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.comparison.http.comparison import TRIAL_CONCURRENCY, median_cell
from benchmarks.comparison.http.contenders import OURS_INT8, Contender, contenders
from benchmarks.comparison.http.latency import LENGTHS_TOKENS, best_by_length
from benchmarks.comparison.in_process.operations import FORMULA
from benchmarks.comparison.in_process.throughput import SESSION_ALONE
from benchmarks.comparison.page.figures import median_ratio, spread
from benchmarks.comparison.page.table import table
from benchmarks.comparison.results import Comparison, SizeResults
from benchmarks.comparison.workspace import Workspace

OPERATORS_SHOWN = 10
_INTRODUCTION = """\
# Performance

`make comparison` measures fillmask and other servers with the same weights, texts and CPUs. It then
writes this page, which calls each measured server a contender. The command needs `wrk`
(`apt-get install wrk` on Debian and Ubuntu) and a machine without other load.

![Requests per second and memory of every contender](performance.png)
"""
_LATENCY = (
    "One client sends one text at a time, so that all CPUs can compute it. The table shows the "
    "median latency over HTTP in milliseconds by the length of the text in tokens. Each cell has "
    "the contender's fastest setting for this length."
)
_OPERATORS = (
    f"The table shows onnxruntime's own profile of {OURS_INT8} on one thread. The profiler slows "
    "small operators down a little. `MatMulIntegerToFloat` computes the int8 products. The other "
    "operators compute a scale for every token and the float32 parts of the model."
)
_METHOD = """\
- A contender answers `POST /fill-mask` in Hugging Face's format, with the five best tokens of each
  mask. A request has one text.
- In each round the comparison measures the contenders one after the other. It starts a contender,
  sends every text once, warms the contender up and measures its requests/s at each number of
  clients. Each connection sends its next request after the response to the previous one.
- The number in a column such as "requests/s at 8" is the number of clients. Speeds and latencies
  are medians over the rounds. The ratio "fillmask int8 / this" is the median of the ratios in the
  single rounds. The spread of rounds is the highest requests/s of a round minus the lowest, as a
  share of the median.
- A trial with 8 clients, or with the texts of the in-process comparison, selects the fastest
  setting of each contender.
- The FastAPI application of several contenders computes one text per run and has no batcher. It
  tokenizes texts and writes responses with the code of this project. The contenders with the
  fill-mask pipeline use transformers' code for both steps.
- "All logits" means the graph that torch.onnx.export(dynamo=True) writes, with logits at every
  position. The gather graph is this project's reference graph, with logits only at the masks.
- The comparison checks correctness before speed. It stops if a contender in fp32 does not return
  the best token of transformers for every mask. Tokens whose log-probabilities differ by at most
  1e-3 nats count as equal, because float32 sums are inexact. The comparison also stops if a
  response has a status other than 200.
- The column "same best token" shows the share of masks for which a contender returns the best token
  of transformers. The model minilm has a random head. The other models have only random weights.
  Random weights give logits close together, so this share says less about quality than with
  trained weights.
- Every contender has uvloop and httptools installed.
- Peak RSS is the sum of VmHWM over all processes of a contender. Pages that processes share count
  in each process.
- The installed size is the size of a fresh virtual environment with the dependencies of the
  contender. The build of torch is the build in the section "The machine". The environment of
  fillmask includes its built-in model. The other environments include no model.
- In-process, all variants get the same tokenized texts in the same order. They use as many threads
  as CPUs. Like the service, fillmask packs batches by tokens, ranks the tokens and splits the
  results. The other variants compute only logits and therefore save the time for the ranking.
- The matrix peak is the highest rate that onnxruntime reaches in several large matrix products. The
  column "of the matrix peak" relates int8 variants to the peak in int8 and fp32 variants to the
  peak in fp32. It counts only the necessary matrix products of a text: {formula}. A text has
  T tokens and m masks. The model has the width D, the feed-forward width F and V vocabulary
  entries.
"""


def comparison_section(comparison: Comparison) -> str:
    """Return the section about the comparison as Markdown."""
    parts = [_INTRODUCTION]
    for size, results in comparison.sizes.items():
        parts += [f"## {size}: {results.parameters}", "### Over HTTP", _texts(results)]
        parts += [_servers(_present(size, comparison), results, comparison)]
        if results.latency_ms:
            parts += ["### Latency of one text", _LATENCY, _latency(results)]
        parts += ["### Without HTTP", _in_process(results, comparison), _shares(results)]
    parts += ["## Where the time goes", _OPERATORS, _operators(comparison)]
    parts += ["## Settings", _list(_settings(comparison))]
    method = _METHOD.format(formula=FORMULA)
    parts += ["## Method of measurement", method + _list(_load_generator(comparison))]
    machine = [f"measured on {comparison.date}", *comparison.machine]
    parts += ["## The machine", _list(machine)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _present(size: str, comparison: Comparison) -> list[Contender]:
    known = contenders(Workspace(size), comparison.cpus)
    return [c for c in known if c.name in comparison.sizes[size].visits]


def _texts(results: SizeResults) -> str:
    return (
        f"Each request has one of {results.texts} texts, which have {results.mean_tokens:.1f} "
        f"tokens and {results.mean_masks:.2f} masks on average (`benchmarks/comparison/TEXTS.md`)."
    )


def _servers(present: list[Contender], results: SizeResults, comparison: Comparison) -> str:
    concurrencies = sorted(results.visits[OURS_INT8][0].cells)

    def rows() -> Iterator[list[str]]:
        ours = [v.cells[TRIAL_CONCURRENCY].requests_per_s for v in results.visits[OURS_INT8]]
        for contender in present:
            visits = results.visits[contender.name]
            cells = {number: median_cell(visits, number) for number in concurrencies}
            theirs = [visit.cells[TRIAL_CONCURRENCY].requests_per_s for visit in visits]
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


def _latency(results: SizeResults) -> str:
    rows = (
        [contender, *(f"{ms:.1f}" for _, ms in best_by_length(by_label).values())]
        for contender, by_label in results.latency_ms.items()
    )
    return table(["contender", *(f"{tokens} tokens" for tokens in LENGTHS_TOKENS)], rows)


def _in_process(results: SizeResults, comparison: Comparison) -> str:
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
    return table(header, rows())


def _peak_gops(variant: str, comparison: Comparison) -> float:
    return comparison.peak.int8_gops if "int8" in variant else comparison.peak.fp32_gops


def _shares(results: SizeResults) -> str:
    in_process = results.in_process[OURS_INT8]
    visits = results.visits[OURS_INT8]
    at_8 = [visit.cells[TRIAL_CONCURRENCY].requests_per_s for visit in visits]
    alone = median_ratio(in_process, results.in_process[OURS_INT8 + SESSION_ALONE])
    return (
        f"Over HTTP with {TRIAL_CONCURRENCY} clients, {OURS_INT8} reaches "
        f"{100 * median_ratio(at_8, in_process):.0f} % of its throughput without HTTP. The "
        "throughput without HTTP includes packing the batches and splitting the results. It is "
        f"{100 * alone:.0f} % of the session's throughput alone."
    )


def _operators(comparison: Comparison) -> str:
    """Format the times of the most expensive operators and of all others together."""
    totals = {size: sum(r.operator_us.values()) for size, r in comparison.sizes.items()}
    shares = {
        size: {operator: us / totals[size] for operator, us in results.operator_us.items()}
        for size, results in comparison.sizes.items()
    }
    names = {name for by_name in shares.values() for name in by_name}
    most = {name: max(by_name.get(name, 0) for by_name in shares.values()) for name in names}
    shown = sorted(most, key=most.__getitem__, reverse=True)[:OPERATORS_SHOWN]

    def cells(names: list[str]) -> Iterator[str]:
        for size, by_name in shares.items():
            share = sum(by_name.get(name, 0) for name in names)
            yield f"{share * totals[size]:.0f} us, {100 * share:.0f} %"

    others = sorted(names.difference(shown))
    rows = [[name, *cells([name])] for name in shown] + [["all others", *cells(others)]]
    return table(["operator", *(f"{size}, per text" for size in shares)], rows)


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
        yield f"**{contender.name}**: {contender.note} The measured configuration has {setting}."


def _load_generator(comparison: Comparison) -> Iterator[str]:
    heaviest = max(
        cell.client_cpu_us * cell.requests_per_s / 1e6
        for results in comparison.sizes.values()
        for visits in results.visits.values()
        for visit in visits
        for cell in visit.cells.values()
    )
    null = comparison.null_server[TRIAL_CONCURRENCY]
    yield (
        f"The load generator is not the bottleneck. To a server that does no work, it sends "
        f"{null.requests_per_s:.0f} requests/s with {TRIAL_CONCURRENCY} clients. In the comparison "
        f"it uses at most {100 * heaviest:.1f} % of one CPU."
    )
    yield (
        f"The comparison has {comparison.rounds} rounds. In each round the measurement of one "
        f"contender takes {comparison.seconds:g} s per number of clients. The matrix peak of the "
        f"{comparison.cpus} CPUs together is {comparison.peak.int8_gops:.0f} GOPS in int8 and "
        f"{comparison.peak.fp32_gops:.0f} GOPS in fp32."
    )


def _list(lines: Iterator[str] | list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)

"""Section about scaling in docs/performance.md, with time per text and memory over requests."""

from __future__ import annotations

from benchmarks.comparison.in_process.scaling import MASKS_AT_TOKENS, TYPICAL_TOKENS, Point, Scaling
from benchmarks.comparison.page.table import table
from benchmarks.comparison.workspace import PRECISIONS

_INTRODUCTION = (
    "Times are medians in milliseconds per text. onnxruntime computes the served graph of MiniLM's "
    "size on one thread, without HTTP. This is the machine of the measurement:"
)


def scaling_section(scaling: Scaling) -> str:
    """Return the section about scaling as Markdown."""
    curves = scaling.curves
    parts = [
        "# Scaling",
        "![Cost by length, masks and batch, and memory over requests](performance-scaling.png)",
        _INTRODUCTION,
        "\n".join(f"- {line}" for line in scaling.machine[:2]),
        "## Length of a text, one mask",
        _points("tokens", curves.by_tokens),
        f"## Masks in a text of {MASKS_AT_TOKENS} tokens",
        _points("masks", curves.by_masks),
        f"## Texts of {TYPICAL_TOKENS} tokens in a batch, one mask each",
        _points("texts", curves.by_texts),
        f"## Vocabulary, a text of {TYPICAL_TOKENS} tokens",
        _vocabulary(scaling),
        "## Threads, the texts of the comparison in batches by tokens, int8",
        table(
            ["threads, one CPU each", "texts/s"],
            [[str(n), f"{speed:.1f}"] for n, speed in scaling.texts_per_s_by_threads.items()],
        ),
        "## Memory over requests of random shapes",
        _memory(scaling),
    ]
    return "\n\n".join(parts) + "\n"


def _points(name: str, points: list[Point]) -> str:
    header = [name, *(f"{precision} ms" for precision in PRECISIONS)]
    rows = [[str(p.at), *(f"{p.ms[precision]:.2f}" for precision in PRECISIONS)] for p in points]
    return table(header, rows)


def _vocabulary(scaling: Scaling) -> str:
    header = ["model", "masks"]
    header += [f"{precision} ms" for precision in PRECISIONS]
    header += [f"{precision} graph MB" for precision in PRECISIONS]
    rows = [
        [
            size,
            str(point.at),
            *(f"{point.ms[precision]:.2f}" for precision in PRECISIONS),
            *(f"{vocabulary.bundle_bytes[precision] / 1e6:.0f}" for precision in PRECISIONS),
        ]
        for size, vocabulary in scaling.curves.by_vocabulary.items()
        for point in vocabulary.by_masks
    ]
    return table(header, rows)


def _memory(scaling: Scaling) -> str:
    memory = scaling.memory
    first_requests, first_bytes = memory.samples[0]
    last_requests, last_bytes = memory.samples[-1]
    return (
        f"The server with the built-in model ({memory.name}) is ready {memory.ready_s:.2f} s "
        f"after the start of the process. Its resident memory is {first_bytes / 1e6:.0f} MB after "
        f"{first_requests} requests and {last_bytes / 1e6:.0f} MB after {last_requests} requests, "
        f"a change of {memory.growth_bytes / 1e6:+.1f} MB. The peak is "
        f"{memory.peak_rss_bytes / 1e6:.0f} MB. A request has one to four texts of any "
        "length up to the model's limit, up to eight masks per text and up to fifty fills per mask."
    )

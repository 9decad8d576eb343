"""Block about scaling in docs/performance.md, with time per text and memory over requests."""

from __future__ import annotations

from benchmarks.comparison.in_process.scaling import MASKS_AT_TOKENS, TYPICAL_TOKENS, Point, Scaling
from benchmarks.comparison.page.table import table
from benchmarks.comparison.workspace import PRECISIONS

NAME = "comparison/page/scaling_section"
_INTRODUCTION = (
    "Median milliseconds per text of the served graph at MiniLM's size, on one thread and without "
    "HTTP ({cpu})."
)


def scaling_section(scaling: Scaling) -> str:
    """Return the block as Markdown."""
    curves = scaling.curves
    parts = [
        _INTRODUCTION.format(cpu=scaling.machine[0]),
        _points("tokens, one mask", curves.by_tokens),
        _points(f"masks in {MASKS_AT_TOKENS} tokens", curves.by_masks),
        _points(f"texts of {TYPICAL_TOKENS} tokens in a batch", curves.by_texts),
        _vocabulary(scaling),
        _threads(scaling),
        _memory(scaling),
    ]
    return "\n\n".join(parts)


def _points(name: str, points: list[Point]) -> str:
    rows = [[p, *(f"{point.ms[p]:.2f}" for point in points)] for p in PRECISIONS]
    return table([name, *(str(point.at) for point in points)], rows)


def _vocabulary(scaling: Scaling) -> str:
    vocabularies = scaling.curves.by_vocabulary
    masks = [point.at for point in next(iter(vocabularies.values())).by_masks]
    rows = [
        [
            size,
            *(f"{point.ms[p]:.2f}" for point in vocabulary.by_masks for p in PRECISIONS),
            *(f"{vocabulary.bundle_bytes[p] / 1e6:.0f}" for p in PRECISIONS),
        ]
        for size, vocabulary in vocabularies.items()
    ]
    header = [f"{p}, masks: {number}" for number in masks for p in PRECISIONS]
    return table(
        [f"vocabulary, {TYPICAL_TOKENS} tokens", *header, *(f"{p} graph MB" for p in PRECISIONS)],
        rows,
    )


def _threads(scaling: Scaling) -> str:
    speeds = [f"{speed:.1f} with {n}" for n, speed in scaling.texts_per_s_by_threads.items()]
    return (
        "**Threads**, one CPU each, on the comparison's texts in batches in int8: texts/s are "
        f"{', '.join(speeds)}."
    )


def _memory(scaling: Scaling) -> str:
    memory = scaling.memory
    first_requests, first_bytes = memory.samples[0]
    last_requests, last_bytes = memory.samples[-1]
    return (
        f"**Memory over requests** of random shapes (one to four texts of any length, up to eight "
        f"masks a text, up to fifty fills a mask): with {memory.name} the server is ready after "
        f"{memory.ready_s:.2f} s and takes {first_bytes / 1e6:.0f} MB after {first_requests} "
        f"requests and {last_bytes / 1e6:.0f} MB after {last_requests}, a change of "
        f"{memory.growth_bytes / 1e6:+.1f} MB. The peak is {memory.peak_rss_bytes / 1e6:.0f} MB."
    )

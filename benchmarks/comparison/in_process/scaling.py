"""Time per text by length, masks, batch size, vocabulary and threads.

    python -m benchmarks.comparison.in_process.scaling SECONDS

The script runs the served graph without HTTP on one thread, with random tokens. It prints the times
as JSON.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from benchmarks.comparison.http.memory import Memory
from benchmarks.comparison.in_process.throughput import Setting, measure
from benchmarks.comparison.process import output_of
from benchmarks.comparison.results import Kept
from benchmarks.comparison.texts import TOP_K
from benchmarks.comparison.workspace import LARGE_VOCABULARY_SIZE, PRECISIONS, Workspace
from fillmask.bundles.bundle import MODEL_FILE, WEIGHTS_FILE
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime

SIZE = "minilm"
LENGTHS_TOKENS = (8, 16, 32, 64, 128, 256, 512)
MASKS = (1, 2, 4, 8, 16, 32, 64)
MASKS_AT_TOKENS = 128
BATCH_TEXTS = (1, 2, 4, 8, 16, 32)
VOCABULARY_MASKS = (1, 8)
TYPICAL_TOKENS = 24  # close to the mean of the comparison's texts
SEED = 0


class Point(BaseModel):
    """Point of a curve.

    Attributes:
        at: value on the horizontal axis.
        ms: milliseconds per text by precision.
    """

    at: int
    ms: dict[str, float]


class Vocabulary(BaseModel):
    """Figures of one vocabulary size.

    Attributes:
        bundle_bytes: size of the graph and its weights by precision.
        by_masks: time per text by number of masks.
    """

    bundle_bytes: dict[str, int]
    by_masks: list[Point]


class Curves(BaseModel):
    """Time per text on one thread."""

    by_tokens: list[Point]
    by_masks: list[Point]
    by_texts: list[Point]
    by_vocabulary: dict[str, Vocabulary]


class Scaling(Kept):
    """Results of the scaling measurements in docs/performance.md."""

    FILE = "scaling.json"

    machine: list[str]
    curves: Curves
    texts_per_s_by_threads: dict[int, float]
    memory: Memory


def measure_curves(cpus: Sequence[int], seconds: float) -> Curves:
    """Measure all curves in a separate process."""
    return Curves.model_validate_json(
        output_of("benchmarks.comparison.in_process.scaling", [str(seconds)], cpus)
    )


def measure_threads(cpus: Sequence[int], seconds: float) -> dict[int, float]:
    """Measure texts/s on the comparison's texts by number of threads, with one CPU each."""
    return {
        count: measure(SIZE, "fillmask int8", Setting(0), cpus[:count], seconds)
        for count in range(1, len(cpus) + 1)
    }


class _Served:
    """Served graph of one model size in all precisions."""

    def __init__(self, size: str) -> None:
        self.files = {p: Workspace(size).bundle(p) / "model.onnx" for p in PRECISIONS}
        self._runtimes = {p: Runtime(file) for p, file in self.files.items()}

    def text_ms(self, *, tokens: int, masks: int, texts: int, seconds: float) -> dict[str, float]:
        """Measure the median milliseconds per text by precision, with alternating precisions."""
        rng = np.random.default_rng(SEED)
        requests = [
            ModelPass(
                input_ids=rng.integers(1_000, 30_000, tokens),
                mask_positions=np.sort(rng.choice(tokens, masks, replace=False)),
                top_k=TOP_K,
                target_ids=no_targets(masks),
            )
            for _ in range(texts)
        ]
        batch = Batch.pack(requests)
        elapsed_ms: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
        for runtime in self._runtimes.values():
            runtime.run(batch)
        ends_s = time.perf_counter() + seconds
        while time.perf_counter() < ends_s or not elapsed_ms[PRECISIONS[0]]:
            for precision, runtime in self._runtimes.items():
                started_s = time.perf_counter()
                runtime.run(batch)
                elapsed_ms[precision].append((time.perf_counter() - started_s) * 1e3)
        return {p: statistics.median(values) / texts for p, values in elapsed_ms.items()}


def _bundle_bytes(bundle: Path) -> int:
    return sum((bundle / name).stat().st_size for name in (MODEL_FILE, WEIGHTS_FILE))


def _curves(seconds: float) -> Curves:
    served = _Served(SIZE)

    def point(at: int, *, tokens: int = TYPICAL_TOKENS, masks: int = 1, texts: int = 1) -> Point:
        ms = served.text_ms(tokens=tokens, masks=masks, texts=texts, seconds=seconds)
        return Point(at=at, ms=ms)

    by_vocabulary = {}
    by_tokens = [point(tokens, tokens=tokens) for tokens in LENGTHS_TOKENS]
    by_masks = [point(masks, tokens=MASKS_AT_TOKENS, masks=masks) for masks in MASKS]
    by_texts = [point(texts, texts=texts) for texts in BATCH_TEXTS]
    for size in (SIZE, LARGE_VOCABULARY_SIZE):
        served = _Served(size)
        by_vocabulary[size] = Vocabulary(
            bundle_bytes={p: _bundle_bytes(file.parent) for p, file in served.files.items()},
            by_masks=[point(masks, masks=masks) for masks in VOCABULARY_MASKS],
        )
    return Curves(
        by_tokens=by_tokens, by_masks=by_masks, by_texts=by_texts, by_vocabulary=by_vocabulary
    )


if __name__ == "__main__":
    print(_curves(float(sys.argv[1])).model_dump_json())

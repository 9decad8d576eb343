"""Throughput of the graphs without HTTP, on tokenized texts.

    python -m benchmarks.comparison.in_process.throughput SIZE VARIANT SETTING THREADS SECONDS

SETTING is a JSON object with the fields of `Setting`.

The script prints texts/s. Each measurement has its own process, so that runtimes and their threads
do not affect each other.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from benchmarks.comparison.engines.ctranslate2_engine import HEADS, CTranslate2Engine
from benchmarks.comparison.engines.graphs import Engine, OnnxRuntimeEngine, OpenVinoEngine
from benchmarks.comparison.http.contenders import OURS, OURS_FUSED
from benchmarks.comparison.process import output_of
from benchmarks.comparison.texts import TOP_K, masked_texts
from benchmarks.comparison.workspace import Workspace
from fillmask.bundles.bundle import read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.machine.memory import move_to_huge_pages
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.registry.graph_choice import choose_graph
from fillmask.settings import Settings
from fillmask.tokenization.encoded_text import EncodedText

GATHER_GRAPH = "gather graph"
PEER_TEXTS_PER_RUN = (1, 8)
SORTED_TEXTS_PER_RUN = (1, 8, 16)
CTRANSLATE2 = "CTranslate2 int8, gather head"
HINTS = {"fp32": ("f32",), "bf16": ("bf16",), "int8": ("f32", "bf16")}
LIMIT_S = 180

# number of texts, and function that computes them
Job = tuple[int, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of a variant.

    Attributes:
        texts_per_run: number of texts per run. 0 for batches up to fillmask's token budget.
        hint: inference precision of OpenVINO, or library of CTranslate2's head. Empty for other
            runtimes.
        by_length: whether the texts of a run have similar lengths, which reduces padding. Otherwise
            the runs contain texts in order of arrival.
    """

    texts_per_run: int
    hint: str = ""
    by_length: bool = False

    @property
    def label(self) -> str:
        """Description of the setting for docs/performance.md."""
        if not self.texts_per_run:
            return "batches by tokens"
        texts = "1 text" if self.texts_per_run == 1 else f"{self.texts_per_run} texts"
        texts += " of similar length" if self.by_length else ""
        return f"{texts} per run, {self.hint}" if self.hint else f"{texts} per run"


def variants() -> dict[str, list[Setting]]:
    """Return the possible settings by variant.

    A trial selects the fastest setting.
    """
    table = {name: [Setting(0)] for name in OURS}
    table[f"onnxruntime, {GATHER_GRAPH}"] = [Setting(texts) for texts in PEER_TEXTS_PER_RUN]
    for precision, hints in HINTS.items():
        table[f"OpenVINO {precision}, {GATHER_GRAPH}"] = [
            Setting(texts, hint) for texts in PEER_TEXTS_PER_RUN for hint in hints
        ]
    table[CTRANSLATE2] = [
        Setting(texts, head, by_length=texts > 1)
        for texts in SORTED_TEXTS_PER_RUN
        for head in HEADS
    ]
    return table


def measure(
    size: str, variant: str, setting: Setting, cpus: Sequence[int], seconds: float
) -> float:
    """Measure texts/s of a variant in a separate process, with one thread per CPU."""
    arguments = [size, variant, json.dumps(asdict(setting)), str(len(cpus)), str(seconds)]
    return float(
        output_of("benchmarks.comparison.in_process.throughput", arguments, cpus, LIMIT_S).split()[
            -1
        ]
    )


def drive(jobs: Sequence[Job], threads: int, seconds: float) -> float:
    """Measure texts/s of threads that repeat the jobs in turn.

    Every thread runs every job once before the measurement, so that the figure excludes compilation
    and allocation for each shape.
    """
    everybody_ready = threading.Barrier(threads)
    turns = itertools.cycle(jobs)
    turns_lock = threading.Lock()
    finished = [0] * threads
    started_s, ended_s = [0.0] * threads, [0.0] * threads

    def work(number: int) -> None:
        for _, run in jobs:
            run()
        everybody_ready.wait()
        started_s[number] = ended_s[number] = time.perf_counter()
        while ended_s[number] - started_s[number] < seconds:
            with turns_lock:
                texts, run = next(turns)
            run()
            finished[number] += texts
            ended_s[number] = time.perf_counter()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(finished) / (max(ended_s) - min(started_s))


def median_s(run: Callable[[], object], runs: int) -> float:
    """Return the median duration of a function in seconds."""
    durations_s = []
    for _ in range(runs):
        started_s = time.perf_counter()
        run()
        durations_s.append(time.perf_counter() - started_s)
    return statistics.median(durations_s)


def by_tokens(texts: Iterable[EncodedText], max_tokens: int) -> Iterator[list[EncodedText]]:
    """Yield batches of up to a token budget in order of arrival, like the service's batcher."""
    batch: list[EncodedText] = []
    tokens = 0
    for text in texts:
        if batch and tokens + len(text.input_ids) > max_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += len(text.input_ids)
    if batch:
        yield batch


def our_jobs(workspace: Workspace, variant: str, texts: Sequence[EncodedText]) -> list[Job]:
    """Create jobs of fillmask, each of which packs, runs and splits a batch like the service."""
    runtime = our_runtime(workspace, variant)

    def pack_run_split(requests: Sequence[ModelPass]) -> object:
        batch = Batch.pack(requests)
        return batch.unpack(runtime.run(batch))

    batches = our_batches(workspace, texts)
    return [(len(batch.passes), partial(pack_run_split, batch.passes)) for batch in batches]


def our_runtime(workspace: Workspace, name: str, threads: int = 1) -> Runtime:
    """Load a graph of this project.

    Args:
        name: name in OURS.

    Raises:
        RuntimeError: the graph must be fused, and this machine or the bundle has none.
    """
    precision, native = OURS[name]
    choice = choose_graph(read_bundle(workspace.bundle(precision)), native)
    if name == OURS_FUSED and choice.kind == "stock":
        raise RuntimeError(choice.reason)
    return Runtime(choice.path, threads, operators=choice.operators, packed=choice.packed)


def our_batches(workspace: Workspace, texts: Iterable[EncodedText]) -> list[Batch]:
    """Pack texts into batches with the service's default settings."""
    special = len(workspace.tokenizer().special_token_ids)
    max_tokens: int = Settings.model_fields["max_batch_tokens"].default
    return [
        Batch.pack([model_pass(text, TOP_K + special) for text in group])
        for group in by_tokens(texts, max_tokens)
    ]


def peer_jobs(
    workspace: Workspace,
    variant: str,
    setting: Setting,
    texts: Sequence[EncodedText],
    threads: int,
) -> list[Job]:
    """Create jobs of another runtime.

    A job pads texts and computes the logits at the masks. The job does not rank tokens, which
    favours the other runtimes.
    """
    engine = _peer_engine(workspace, variant, setting, threads)
    if setting.by_length:
        texts = sorted(texts, key=lambda text: len(text.input_ids))
    starts = range(0, len(texts), setting.texts_per_run)
    groups = [texts[start : start + setting.texts_per_run] for start in starts]
    return [(len(group), partial(engine.logits, group)) for group in groups]


def _peer_engine(workspace: Workspace, variant: str, setting: Setting, threads: int) -> Engine:
    if variant == CTRANSLATE2:
        return CTranslate2Engine(workspace.ctranslate2, "int8", setting.hint, threads, 1)
    if variant.startswith("onnxruntime"):
        return OnnxRuntimeEngine(workspace.gather, threads=1)
    graph = workspace.gather_int8 if "int8" in variant else workspace.gather
    return OpenVinoEngine(graph, setting.hint, streams=threads, threads=threads)


def model_pass(text: EncodedText, top_k: int) -> ModelPass:
    """Return the pass that fills all masks of a text."""
    targets = no_targets(len(text.mask_positions))
    return ModelPass(text.input_ids, text.mask_positions, top_k, targets)


def main() -> None:
    """Measure one variant and print its texts/s."""
    size, variant, fields, threads, seconds = sys.argv[1:]
    setting = Setting(**json.loads(fields))
    workspace = Workspace(size)
    tokenizer = workspace.tokenizer()
    texts = [tokenizer.encode(text) for text in masked_texts()]
    if setting.texts_per_run:
        jobs = peer_jobs(workspace, variant, setting, texts, int(threads))
    else:
        jobs = our_jobs(workspace, variant, texts)
    move_to_huge_pages([])  # gives the other runtimes the same huge pages as the service's runtime
    print(drive(jobs, int(threads), float(seconds)))


if __name__ == "__main__":
    main()

"""The fused graph beside the stock graph, CTranslate2 and OpenVINO in int8, for docs/native.md.

    .venv-comparison/bin/python -m benchmarks.comparison.fused SIZE [ROUNDS]

All contenders take turns in each round, each in a process of its own. The script prints medians,
and the medians over the rounds of each contender's ratio to the fused graph, in four tables:
packed batches with one thread per CPU, texts alone with all CPUs, 8 clients over HTTP, and texts
alone over HTTP.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from benchmarks.comparison.engines.graphs import OpenVinoEngine
from benchmarks.comparison.http.comparison import HttpComparison, Plan
from benchmarks.comparison.http.contenders import OURS_FUSED, OURS_INT8, contenders
from benchmarks.comparison.http.latency import LatencyComparison, candidates, texts_of_length
from benchmarks.comparison.in_process.throughput import (
    CTRANSLATE2,
    GATHER_GRAPH,
    HINTS,
    Setting,
    measure,
    model_pass,
    our_runtime,
    variants,
)
from benchmarks.comparison.process import output_of
from benchmarks.comparison.results import SizeResults
from benchmarks.comparison.run import prepare
from benchmarks.comparison.texts import TOP_K
from benchmarks.comparison.workspace import Workspace
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.machine.memory import move_to_huge_pages
from fillmask.tokenization.encoded_text import EncodedText

CPUS = (0, 1)
ROUNDS, SECONDS = 5, 4.0
LENGTHS_TOKENS = (16, 32, 64, 128, 256, 512)
LONE_S = 0.8  # of each length
OPENVINO = f"OpenVINO int8, {GATHER_GRAPH}"
OURS_IN_INT8 = (OURS_FUSED, OURS_INT8)
LONE_OVER_HTTP = (*OURS_IN_INT8, OPENVINO)
PACKED = (OURS_FUSED, OURS_INT8, CTRANSLATE2, OPENVINO)
LONE = (OURS_FUSED, OURS_INT8, *(f"{OPENVINO}, {hint}" for hint in HINTS["int8"]))


def main() -> None:
    """Measure all tables of a size, or the texts alone of one contender."""
    if sys.argv[1] == "lone":
        print(json.dumps(lone(Workspace(sys.argv[2]), sys.argv[3])))
        return
    size, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    prepare(size)
    turns = Turns(size, rounds)
    for number in range(rounds):
        turns.round(number)
    print(f"\n{size}, {rounds} rounds")
    for line in turns.tables():
        print(line)


class Turns:
    """Measurements of one size, in which all contenders take turns."""

    def __init__(self, size: str, rounds: int) -> None:
        self._size = size
        self._chosen = {name: fastest(size, name, variants()[name]) for name in PACKED}
        self._packed: dict[str, list[float]] = {name: [] for name in PACKED}
        self._alone: dict[str, list[dict[str, float]]] = {name: [] for name in LONE}
        plan = Plan(
            rounds=rounds,
            seconds=SECONDS,
            concurrencies=(8,),
            server_cpus=CPUS,
            client_cpus=CPUS,
        )
        self._results = SizeResults(parameters=size, texts=0, mean_tokens=0, mean_masks=0)
        workspace = Workspace(size)
        self._http = HttpComparison(workspace, plan, self._results)
        self._ours = [one for one in contenders(workspace, 2) if one.name in OURS_IN_INT8]
        known = [one for one in candidates(workspace, 2) if one.contender in LONE_OVER_HTTP]
        self._latency = LatencyComparison(workspace, plan, self._results, known)
        for contender in self._ours:
            self._http.choose_setting(contender)

    def round(self, number: int) -> None:
        """Measure each contender once."""
        for name, setting in self._chosen.items():
            self._packed[name].append(measure(self._size, name, setting, CPUS, SECONDS))
        for name, times in self._alone.items():
            arguments = ["lone", self._size, name]
            printed = output_of("benchmarks.comparison.fused", arguments, CPUS)
            times.append(json.loads(printed.splitlines()[-1]))
        for contender in self._ours:
            self._http.visit(contender, number)
        self._latency.round()

    def tables(self) -> Iterator[str]:
        """Yield the lines of the four tables."""
        yield "\n| packed batches | texts/s | fused / this | setting |\n|---|---|---|---|"
        for name, speeds in self._packed.items():
            yield f"| {name} | {speed_cells(self._packed, speeds)} | {self._chosen[name].label} |"
        lengths = " | ".join(map(str, LENGTHS_TOKENS))
        yield f"\n| one text, ms (this / fused) | {lengths} |\n|---|{'---|' * len(LENGTHS_TOKENS)}"
        for name, times in self._alone.items():
            yield f"| {name} | {' | '.join(lone_cells(self._alone[OURS_FUSED], times))} |"
        yield "\n| 8 clients over HTTP | requests/s | fused / this |\n|---|---|---|"
        visits = self._results.visits
        by_name = {name: [one.cells[8].requests_per_s for one in visits[name]] for name in visits}
        for name, speeds in by_name.items():
            yield f"| {name} | {speed_cells(by_name, speeds)} |"
        yield "\n| one text over HTTP, ms | tokens: median |\n|---|---|"
        for name, by_label in self._results.latency_ms.items():
            for label, rounds_ms in by_label.items():
                cells = [f"{n}: {statistics.median(ms):.2f}" for n, ms in rounds_ms.items()]
                yield f"| {name}, {label} | {', '.join(cells)} |"


def speed_cells(by_name: Mapping[str, Sequence[float]], speeds: Sequence[float]) -> str:
    """Return the median of speeds, and of their ratios to those of the fused graph."""
    return f"{statistics.median(speeds):.0f} | {ratio_of(by_name[OURS_FUSED], speeds):.2f}"


def fastest(size: str, variant: str, settings: Sequence[Setting]) -> Setting:
    """Return the fastest setting of a variant in a trial."""
    if len(settings) == 1:
        return settings[0]
    return max(settings, key=lambda one: measure(size, variant, one, CPUS, SECONDS / 2))


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median over the rounds of the ratio of two speeds."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def lone_cells(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]]) -> list[str]:
    """Return a median time and a median ratio for each length."""
    cells = []
    for tokens in map(str, LENGTHS_TOKENS):
        times_ms = [one[tokens] for one in theirs]
        ratio = ratio_of(times_ms, [one[tokens] for one in ours])
        cells.append(f"{statistics.median(times_ms):.2f} ({ratio:.2f})")
    return cells


def lone(workspace: Workspace, name: str) -> dict[int, float]:
    """Return the median time in ms of a text alone on all CPUs, by length in tokens."""
    tokenizer = workspace.tokenizer()
    run: Callable[..., object]
    if name.startswith(OPENVINO):
        hint = name.rpartition(", ")[2]
        engine = OpenVinoEngine(workspace.gather_int8, hint, streams=1, threads=len(CPUS))
        run = engine.logits
    else:
        runtime = our_runtime(workspace, name, len(CPUS))
        special = len(tokenizer.special_token_ids)

        def run(texts: Sequence[EncodedText]) -> object:
            batch = Batch.pack([model_pass(text, TOP_K + special) for text in texts])
            return batch.unpack(runtime.run(batch))

    move_to_huge_pages([])
    found = {}
    for tokens in LENGTHS_TOKENS:
        jobs = [
            partial(run, [tokenizer.encode(text)]) for text in texts_of_length(tokenizer, tokens)
        ]
        for job in jobs * 2:
            job()
        times_s: list[float] = []
        while sum(times_s) < LONE_S or len(times_s) < 8:
            job = jobs[len(times_s) % len(jobs)]
            started_s = time.perf_counter()
            job()
            times_s.append(time.perf_counter() - started_s)
        found[tokens] = statistics.median(times_s) * 1e3
    return found


if __name__ == "__main__":
    main()

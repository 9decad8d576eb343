"""Latency of single texts over HTTP by their length, with all CPUs for each text."""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from benchmarks.comparison.engines.ctranslate2_engine import HEADS
from benchmarks.comparison.http.comparison import Plan, ask, write_bodies
from benchmarks.comparison.http.contenders import OURS, module_command, our_command
from benchmarks.comparison.http.load import load
from benchmarks.comparison.process import running
from benchmarks.comparison.results import SizeResults
from benchmarks.comparison.texts import FILE, MASK_TOKEN
from benchmarks.comparison.workspace import Workspace
from fillmask.tokenization.tokenizer import Tokenizer

LENGTHS_TOKENS = (16, 64, 128, 256, 512)
TEXTS_PER_LENGTH = 4
SECONDS = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """Contender with one of its settings.

    Attributes:
        contender: name of the contender.
        label: description of the setting for docs/performance.md.
        command: command without port.
        ready_path: path that returns 200 when the contender is ready.
    """

    contender: str
    label: str
    command: tuple[str, ...]
    ready_path: str = "/health/ready"


def candidates(workspace: Workspace, cpus: int) -> Iterator[Candidate]:
    """Yield every contender with each of its settings for single texts.

    onnxruntime and OpenVINO get the graph that computes logits only at the masks, which favours
    them: a user's own export computes logits at every position.
    """
    for name in OURS:
        yield Candidate(name, "default values", our_command(workspace, name))
    threads = ("--runs", "1", "--threads", str(cpus))
    checkpoint = str(workspace.checkpoint)
    yield Candidate(
        "transformers pipeline",
        "all threads",
        module_command("pipeline", "--checkpoint", checkpoint, *threads),
    )
    session = ("session", "--size", workspace.size, *threads, "--graph")
    for label, flags in (("without spinning threads", ()), ("spinning threads", ("--spinning",))):
        yield Candidate(
            "onnxruntime, gather graph",
            label,
            module_command(*session, str(workspace.gather), "--engine", "onnxruntime", *flags),
        )
    for precision, graph, hints in (
        ("fp32", workspace.gather, ("f32",)),
        ("bf16", workspace.gather, ("bf16",)),
        ("int8", workspace.gather_int8, ("f32", "bf16")),
    ):
        for hint in hints:
            options = ("--engine", "openvino", "--precision", hint)
            yield Candidate(
                f"OpenVINO {precision}, gather graph",
                f"latency hint, {hint}",
                module_command(*session, str(graph), *options),
            )
    for head in HEADS:
        options = ("--engine", "ctranslate2", "--head", head)
        yield Candidate(
            "CTranslate2 int8",
            f"head in {head}",
            module_command(*session, str(workspace.ctranslate2), *options),
        )


class LatencyComparison:
    """Latency comparison of one model size.

    The first round measures every candidate. Later rounds measure only the candidates that were the
    fastest of their contender at one length or more.

    Args:
        results: object to which the methods add figures.
        known: candidates, by default all of them.
    """

    def __init__(
        self,
        workspace: Workspace,
        plan: Plan,
        results: SizeResults,
        known: Sequence[Candidate] = (),
    ) -> None:
        self._size = workspace.size
        self._plan = plan
        self._results = results
        tokenizer = workspace.tokenizer()
        self._texts = {tokens: texts_of_length(tokenizer, tokens) for tokens in LENGTHS_TOKENS}
        self._bodies = {
            tokens: write_bodies(f"bodies-{tokens}", texts) for tokens, texts in self._texts.items()
        }
        self._candidates = list(known or candidates(workspace, len(plan.server_cpus)))

    def round(self) -> None:
        """Measure the candidates once."""
        for candidate in self._candidates:
            self._visit(candidate)
        fastest = {
            (contender, label)
            for contender, by_label in self._results.latency_ms.items()
            for label, _ in best_by_length(by_label).values()
        }
        self._candidates = [c for c in self._candidates if (c.contender, c.label) in fastest]

    def _visit(self, candidate: Candidate) -> None:
        log_name = re.sub(r"\W+", "-", f"{self._size} {candidate.contender} {candidate.label}")
        cpus = self._plan.server_cpus
        by_label = self._results.latency_ms.setdefault(candidate.contender, {})
        rounds_ms = by_label.setdefault(candidate.label, {})
        with running(candidate.command, cpus, candidate.ready_path, log_name) as server:
            for tokens, texts in self._texts.items():
                for text in texts:  # warm-up
                    ask(server.port, "/fill-mask", text)
                cell = load(
                    server.port,
                    self._bodies[tokens],
                    concurrency=1,
                    seconds=SECONDS,
                    first=0,
                    cpus=self._plan.client_cpus,
                )
                rounds_ms.setdefault(tokens, []).append(cell.p50_ms)
        figures = ", ".join(f"{values[-1]:.2f}" for values in rounds_ms.values())
        print(f"{log_name}: p50 {figures} ms", file=sys.stderr)


def best_by_length(
    by_label: Mapping[str, Mapping[int, Sequence[float]]],
) -> dict[int, tuple[str, float]]:
    """Return the fastest setting of a contender and its median p50 by length.

    Args:
        by_label: p50 of each round in milliseconds, by setting and by length in tokens.
    """
    return {
        tokens: min(
            ((label, statistics.median(rounds[tokens])) for label, rounds in by_label.items()),
            key=lambda pair: pair[1],
        )
        for tokens in LENGTHS_TOKENS
    }


def texts_of_length(tokenizer: Tokenizer, tokens: int) -> list[str]:
    """Return texts of exactly `tokens` tokens, special tokens included, with one mask each."""
    words = FILE.read_text(encoding="utf-8").split()
    step = len(words) // TEXTS_PER_LENGTH
    return [
        _text_of_length(tokenizer, tokens, islice(cycle(words), start, None))
        for start in range(0, step * TEXTS_PER_LENGTH, step)
    ]


def _text_of_length(tokenizer: Tokenizer, tokens: int, words: Iterator[str]) -> str:
    text = MASK_TOKEN
    missing = tokens - len(tokenizer.encode(text).input_ids)
    for word in words:
        if missing == 0:
            break
        longer = f"{text} {word}"
        left = tokens - len(tokenizer.encode(longer).input_ids)
        if left >= 0:
            text, missing = longer, left
    return text

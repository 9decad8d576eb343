"""Latency of single texts over HTTP by their length, with all CPUs for each text."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence

from benchmarks.comparison.contenders.contender import Contender, Setting
from benchmarks.comparison.load import load
from benchmarks.comparison.over_http import Plan, ask, log_name, write_bodies
from benchmarks.comparison.process import running
from benchmarks.comparison.results import SizeResults
from benchmarks.comparison.texts import MASK_TOKEN, texts_of_length
from benchmarks.comparison.workspace import Workspace

LENGTHS_TOKENS = (16, 64, 128, 256, 512)
TEXTS_PER_LENGTH = 4
SECONDS = 2


class LatencyComparison:
    """Latency comparison of one model size.

    The first round measures every setting. Later rounds measure only the settings that were the
    fastest of their contender at one length or more.

    Args:
        known: contenders, in the order of measurement.
        results: object to which the methods add figures.
    """

    def __init__(
        self, workspace: Workspace, plan: Plan, known: list[Contender], results: SizeResults
    ) -> None:
        self._workspace = workspace
        self._plan = plan
        self._results = results
        tokenizer = workspace.tokenizer()
        self._texts = {
            tokens: texts_of_length(
                lambda text: tokenizer.encode(text).input_ids, tokens, TEXTS_PER_LENGTH, MASK_TOKEN
            )
            for tokens in LENGTHS_TOKENS
        }
        self._bodies = {
            tokens: write_bodies(f"bodies-{tokens}", texts) for tokens, texts in self._texts.items()
        }
        self._turns = [
            (contender, setting) for contender in known for setting in contender.settings
        ]

    def round(self) -> None:
        """Measure the settings once."""
        for contender, setting in self._turns:
            self._visit(contender, setting)
        fastest = {
            (name, label)
            for name, by_label in self._results.latency_ms.items()
            for label, _ in best_by_length(by_label).values()
        }
        self._turns = [turn for turn in self._turns if (turn[0].name, turn[1].label) in fastest]

    def _visit(self, contender: Contender, setting: Setting) -> None:
        name = log_name(self._workspace, contender, setting)
        by_label = self._results.latency_ms.setdefault(contender.name, {})
        rounds_ms = by_label.setdefault(setting.label, {})
        with running(setting.command, self._plan.server_cpus, name) as server:
            for tokens, texts in self._texts.items():
                for text in texts:  # warm-up
                    ask(server.port, text)
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
        print(f"{name}: p50 {figures} ms", file=sys.stderr)


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

"""Comparison of the contenders over HTTP, with one process per contender and round."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.comparison.classification.files import (
    BUNDLES,
    CHECKPOINT,
    Reference,
    read_reference,
    texts,
)
from benchmarks.comparison.http.comparison import TEXTS_PER_ROUND, Plan, ask, write_bodies
from benchmarks.comparison.http.contenders import (
    OURS_FP32,
    OURS_INT8,
    Contender,
    Setting,
    module_command,
    runs_by_threads,
)
from benchmarks.comparison.http.load import load
from benchmarks.comparison.process import Server, ServerError, running
from benchmarks.comparison.results import Cell, Visit

PATH = "/classify"
CLIENTS = 8
PIPELINE = "transformers pipeline behind FastAPI"
# maximum difference of a score in fp32 from transformers' score
TOLERANCE = 1e-4


def contenders(cpus: int) -> list[Contender]:
    """Return the contenders in the order of measurement."""
    ours = [
        Contender(
            name=name,
            command=(sys.executable, "-m", "fillmask", "--bundle", str(BUNDLES / precision)),
            settings=(Setting("the default values of all settings"),),
            environment="fillmask",
            exact=precision == "fp32",
            note=f"`fillmask-serve` serves the {precision} bundle.",
        )
        for name, precision in ((OURS_INT8, "int8"), (OURS_FP32, "fp32"))
    ]
    pipeline = Contender(
        name=PIPELINE,
        command=module_command(
            *("pipeline", "--task", "text-classification", "--checkpoint", str(CHECKPOINT))
        ),
        settings=runs_by_threads(cpus),
        environment="transformers",
        exact=True,
        note="A FastAPI application runs the text-classification pipeline.",
    )
    return [*ours, pipeline]


class ClassificationComparison:
    """Comparison of the contenders at CLIENTS concurrent requests."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._texts = texts()
        self._reference = read_reference()
        self._bodies = write_bodies("classification-bodies", self._texts)
        self._chosen: dict[str, Setting] = {}
        self.settings: dict[str, str] = {}
        self.visits: dict[str, list[Visit]] = {}

    def choose_setting(self, contender: Contender) -> None:
        """Select the contender's setting with the most requests/s in a trial."""
        speeds = {}
        for setting in contender.settings if len(contender.settings) > 1 else ():
            speeds[setting] = self._visit(contender, setting, 0).cells[CLIENTS].requests_per_s
        best = max(speeds, key=speeds.__getitem__, default=contender.settings[0])
        self._chosen[contender.name] = best
        self.settings[contender.name] = describe_choice(best, speeds)

    def visit(self, contender: Contender, number: int) -> None:
        """Measure one contender in one round."""
        visit = self._visit(contender, self._chosen[contender.name], number)
        self.visits.setdefault(contender.name, []).append(visit)

    def _visit(self, contender: Contender, setting: Setting, number: int) -> Visit:
        command = (*contender.command, *setting.arguments)
        log_name = re.sub(r"\W+", "-", f"classification {contender.name} {setting.label}")
        with running(command, self._plan.server_cpus, contender.ready_path, log_name) as server:
            answers = [ask(server.port, PATH, text) for text in self._texts]
            agreement = check(contender, self._reference, answers)
            self._load(server, number)  # warm-up with concurrent requests
            cell = self._load(server, number)
            print(
                f"round {number}: {contender.name}: {cell.requests_per_s:.1f} requests/s",
                file=sys.stderr,
            )
            return Visit(
                ready_s=server.ready_s,
                peak_rss_bytes=server.peak_rss_bytes(),
                agreement=agreement,
                cells={CLIENTS: cell},
            )

    def _load(self, server: Server, number: int) -> Cell:
        return load(
            server.port,
            self._bodies,
            concurrency=CLIENTS,
            seconds=self._plan.seconds,
            first=number * TEXTS_PER_ROUND % len(self._texts),
            cpus=self._plan.client_cpus,
            path=PATH,
        )


def check(contender: Contender, reference: Reference, answers: Sequence[Any]) -> float:
    """Return the share of texts whose best label is the same as in transformers' pipeline.

    Args:
        contender: contender that returned the responses.
        reference: scores of transformers by label, for each text.
        answers: responses, each a list of labels or a list with one such list.

    Raises:
        ServerError: a response lacks a label, or a score in fp32 differs from transformers' score
            by more than TOLERANCE.
    """
    same = 0
    for number, (expected, answer) in enumerate(zip(reference, answers, strict=True)):
        labels = answer[0] if isinstance(answer[0], list) else answer
        scores = {label["label"]: label["score"] for label in labels}
        if scores.keys() != expected.keys():
            raise ServerError(
                f"the response of {contender.name} to text {number} must have the labels "
                f"{', '.join(sorted(expected))} (got {', '.join(sorted(scores))})"
            )
        difference = max(abs(scores[label] - expected[label]) for label in expected)
        if contender.exact and difference > TOLERANCE:
            raise ServerError(
                f"the scores of {contender.name} for text {number} must differ from "
                f"transformers' scores by at most {TOLERANCE} (got {difference:.2g})"
            )
        same += max(scores, key=scores.__getitem__) == max(expected, key=expected.__getitem__)
    return same / len(reference)


def describe_choice(best: Setting, speeds: Mapping[Setting, float]) -> str:
    """Describe the fastest setting and the trial for docs/classification.md.

    Args:
        best: the fastest setting.
        speeds: requests/s by setting. A contender with one setting has no trial.
    """
    if not speeds:
        return best.label
    others = [
        f". The configuration with {setting.label} reaches {speed:.1f} requests/s"
        for setting, speed in speeds.items()
        if setting != best
    ]
    return (
        f"{best.label}. In a trial with {CLIENTS} clients this configuration reaches "
        f"{speeds[best]:.1f} requests/s{''.join(others)}"
    )

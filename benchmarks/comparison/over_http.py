"""Requests/s with many clients, with one process per contender and round."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from benchmarks.comparison.contenders.contender import Contender, Setting
from benchmarks.comparison.correctness import best_ordinary_tokens, compare, read_reference
from benchmarks.comparison.load import load
from benchmarks.comparison.process import HOST, Server, ServerError, running
from benchmarks.comparison.results import Cell, SizeResults, Visit
from benchmarks.comparison.texts import masked_texts, request_body
from benchmarks.comparison.workspace import CACHE, Workspace

TRIAL_CONCURRENCY = 8
# each round begins at another text, so that slow contenders get all texts over the rounds
TEXTS_PER_ROUND = 41
_ANSWER_LIMIT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Settings of a comparison.

    Attributes:
        rounds: number of measurements per contender.
        seconds: duration of each measurement.
        concurrencies: numbers of concurrent requests.
        client_cpus: CPUs of the load generator.
    """

    rounds: int
    seconds: float
    concurrencies: tuple[int, ...]
    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]


class BusyComparison:
    """Comparison of one model size with many clients.

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
        self._texts = masked_texts()
        self._bodies = write_bodies("bodies", self._texts)
        self._reference = read_reference(workspace.reference)
        self._special = workspace.tokenizer().special_token_ids
        self._chosen = {contender: self._choose(contender) for contender in known}

    def round(self, number: int) -> None:
        """Measure every contender once."""
        for contender, setting in self._chosen.items():
            visit = self._visit(contender, setting, self._plan.concurrencies, number)
            self._results.visits.setdefault(contender.name, []).append(visit)

    def _choose(self, contender: Contender) -> Setting:
        """Return the contender's setting with the most requests/s in a trial."""
        speeds = {}
        for setting in contender.settings if len(contender.settings) > 1 else ():
            cells = self._visit(contender, setting, (TRIAL_CONCURRENCY,), 0).cells
            speeds[setting] = cells[TRIAL_CONCURRENCY].requests_per_s
        best = max(speeds, key=speeds.__getitem__, default=contender.settings[0])
        self._results.chosen[contender.name] = best.label
        return best

    def _visit(
        self,
        contender: Contender,
        setting: Setting,
        concurrencies: tuple[int, ...],
        number: int,
    ) -> Visit:
        name = log_name(self._workspace, contender, setting)
        with running(setting.command, self._plan.server_cpus, name) as server:
            agreement = self._check(contender, server)  # also a warm-up with every text
            self._load(server, TRIAL_CONCURRENCY, number)  # a warm-up with concurrent requests
            cells = {}
            for concurrency in concurrencies:
                cells[concurrency] = cell = self._load(server, concurrency, number)
                print(
                    f"round {number}: {name} at {concurrency}: {cell.requests_per_s:.1f} "
                    f"requests/s, p50 {cell.p50_ms:.1f} ms, p99 {cell.p99_ms:.1f} ms",
                    file=sys.stderr,
                )
            return Visit(
                ready_s=server.ready_s,
                peak_rss_bytes=server.peak_rss_bytes(),
                agreement=agreement,
                cells=cells,
            )

    def _load(self, server: Server, concurrency: int, number: int) -> Cell:
        return load(
            server.port,
            self._bodies,
            concurrency=concurrency,
            seconds=self._plan.seconds,
            first=number * TEXTS_PER_ROUND % len(self._texts),
            cpus=self._plan.client_cpus,
        )

    def _check(self, contender: Contender, server: Server) -> float:
        """Return the share of masks at which the server has transformers' best token.

        Raises:
            ServerError: a contender in fp32 misses one, or a status is not 200.
        """
        with ThreadPoolExecutor(len(self._plan.server_cpus)) as pool:
            answers = list(pool.map(lambda text: ask(server.port, text), self._texts))
        tokens = [best_ordinary_tokens(answer, self._special) for answer in answers]
        share = compare(self._reference, tokens)
        if contender.exact and share < 1:
            raise ServerError(
                f"{contender.name} must agree with transformers on all masks (got {share:.2%})"
            )
        return share


def log_name(workspace: Workspace, contender: Contender, setting: Setting) -> str:
    """Return the name of the log file of a contender with a setting."""
    return re.sub(r"\W+", "-", f"{workspace.size} {contender.name} {setting.label}")


def write_bodies(name: str, texts: Iterable[str]) -> Path:
    """Write a file with the request body of each text on its own line and return its path."""
    path = CACHE / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{request_body(text)}\n" for text in texts))
    return path


def ask(port: int, text: str) -> Any:
    """Send one text to a measured server and return the JSON of its response.

    Raises:
        ServerError: the status of the response is not 200.
    """
    headers = {"Content-Type": "application/json"}
    url, body = f"http://{HOST}:{port}/fill-mask", request_body(text).encode()
    try:
        with urlopen(Request(url, body, headers), timeout=_ANSWER_LIMIT_S) as response:
            return json.load(response)
    except HTTPError as error:
        raise ServerError(
            f"the status for {text!r} must be 200 (got {error.code}: {error.read()[:200]!r})"
        ) from None

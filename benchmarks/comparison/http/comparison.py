"""Comparison over HTTP, with one process per contender and round."""

from __future__ import annotations

import http.client
import json
import re
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison.http.contenders import Contender, Setting
from benchmarks.comparison.http.correctness import (
    Agreement,
    best_ordinary_tokens,
    compare,
    read_reference,
)
from benchmarks.comparison.http.load import load
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


class HttpComparison:
    """Comparison of one model size over HTTP.

    Args:
        results: object to which the methods add figures.
    """

    def __init__(self, workspace: Workspace, plan: Plan, results: SizeResults) -> None:
        self._workspace = workspace
        self._plan = plan
        self._results = results
        self._texts = masked_texts()
        self._bodies = write_bodies("bodies", self._texts)
        self._reference = read_reference(workspace.reference)
        self._special = workspace.tokenizer().special_token_ids
        self._chosen: dict[str, Setting] = {}

    def choose_setting(self, contender: Contender) -> None:
        """Select the contender's setting with the most requests/s in a trial."""
        speeds = {}
        for setting in contender.settings if len(contender.settings) > 1 else ():
            cells = self._visit(contender, setting, (TRIAL_CONCURRENCY,), 0).cells
            speeds[setting] = cells[TRIAL_CONCURRENCY].requests_per_s
        best = max(speeds, key=speeds.__getitem__, default=contender.settings[0])
        self._chosen[contender.name] = best
        self._results.chosen[contender.name] = best.label

    def visit(self, contender: Contender, number: int) -> None:
        """Measure one contender in one round."""
        setting = self._chosen[contender.name]
        visit = self._visit(contender, setting, self._plan.concurrencies, number)
        self._results.visits.setdefault(contender.name, []).append(visit)

    def _visit(
        self,
        contender: Contender,
        setting: Setting,
        concurrencies: tuple[int, ...],
        number: int,
    ) -> Visit:
        command = (*contender.command, *setting.arguments)
        log_name = re.sub(r"\W+", "-", f"{self._workspace.size} {contender.name} {setting.label}")
        with running(command, self._plan.server_cpus, contender.ready_path, log_name) as server:
            agreement = self._check(contender, server)  # also a warm-up with every text
            cells = {}
            # warm-up with concurrent requests
            self._load(server, TRIAL_CONCURRENCY, number)
            for concurrency in concurrencies:
                cells[concurrency] = cell = self._load(server, concurrency, number)
                print(
                    f"{self._workspace.size} round {number}: {contender.name} at {concurrency}: "
                    f"{cell.requests_per_s:.1f} requests/s, p50 {cell.p50_ms:.1f} ms, "
                    f"p99 {cell.p99_ms:.1f} ms",
                    file=sys.stderr,
                )
            return Visit(
                ready_s=server.ready_s,
                peak_rss_bytes=server.peak_rss_bytes(),
                agreement=agreement.share,
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

    def _check(self, contender: Contender, server: Server) -> Agreement:
        """Compare the server's response to every text with the reference.

        Raises:
            ServerError: an fp32 contender disagrees with the reference, or a response has a status
                other than 200.
        """
        with ThreadPoolExecutor(len(self._plan.server_cpus)) as pool:
            answers = list(pool.map(lambda text: ask(server.port, "/fill-mask", text), self._texts))
        tokens = [best_ordinary_tokens(answer, self._special) for answer in answers]
        agreement = compare(self._reference, tokens)
        if contender.exact and agreement.same < agreement.masks:
            raise ServerError(
                f"{contender.name} must agree with transformers on all {agreement.masks} masks "
                f"(got {agreement.same})"
            )
        return agreement


def measure_null_server(plan: Plan) -> dict[int, Cell]:
    """Measure the load generator against a server that computes nothing.

    Returns:
        Figures by concurrency.
    """
    bodies = write_bodies("bodies", masked_texts())
    command = (sys.executable, "-m", "benchmarks.comparison.servers.nothing")
    with running(command, plan.server_cpus, "/", "nothing") as server:
        return {
            concurrency: load(
                server.port,
                bodies,
                concurrency=concurrency,
                seconds=plan.seconds,
                first=0,
                cpus=plan.client_cpus,
            )
            for concurrency in plan.concurrencies
        }


def write_bodies(name: str, texts: Iterable[str]) -> Path:
    """Write a file with the request body of each text on its own line and return its path."""
    path = CACHE / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{request_body(text)}\n" for text in texts))
    return path


def describe_texts(workspace: Workspace) -> tuple[list[int], list[int]]:
    """Return the number of tokens and the number of masks of each text."""
    tokenizer = workspace.tokenizer()
    encoded = [tokenizer.encode(text) for text in masked_texts()]
    return [len(e.input_ids) for e in encoded], [len(e.mask_positions) for e in encoded]


def median_cell(visits: list[Visit], concurrency: int) -> Cell:
    """Return the sum of the requests and the medians of the other figures over the rounds."""
    cells = [visit.cells[concurrency] for visit in visits]
    return Cell(
        requests=sum(cell.requests for cell in cells),
        requests_per_s=statistics.median(cell.requests_per_s for cell in cells),
        p50_ms=statistics.median(cell.p50_ms for cell in cells),
        p99_ms=statistics.median(cell.p99_ms for cell in cells),
        client_cpu_us=statistics.median(cell.client_cpu_us for cell in cells),
    )


def ask(port: int, path: str, text: str) -> Any:
    """Send one text to a measured server and return the JSON of its response.

    Raises:
        ServerError: the status of the response is not 200.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_LIMIT_S)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", path, request_body(text), headers)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise ServerError(
            f"the status for {text!r} must be 200 (got {response.status}: {content[:200]!r})"
        )
    return json.loads(content)

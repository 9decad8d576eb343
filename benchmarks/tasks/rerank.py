"""Requests/s of rerankers with 32 texts per query, for docs/rerank.md.

    .venv-dev/bin/python -m benchmarks.tasks.rerank

The reranker has the size of MiniLM-L6 and random weights, which do not affect the speed. The
contenders take turns. The run takes three minutes and needs wrk and a quiet machine.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import torch
from transformers import BertForSequenceClassification

from benchmarks import generated_block
from benchmarks.comparison.load import load
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.page import median_ratio
from benchmarks.comparison.process import HOST, running
from benchmarks.comparison.texts import FILE
from benchmarks.comparison.workspace import CACHE
from benchmarks.tasks.checkpoints import OURS, bundle_of, config_of, export, save_with_tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "rerank.md"
TEXTS, CLIENTS, ROUNDS, SECONDS, WARM_UP_S = 32, 4, 3, 6.0, 2.0
TOLERANCE = 1e-3  # scores in fp32 against transformers
THEIRS = "transformers behind FastAPI"
HEADER = (
    *("contender", f"requests/s, {CLIENTS} clients", "texts/s", f"{OURS[0]} / this"),
    "largest difference",
)


def main() -> None:
    """Measure the contenders in turns and write the table to the page."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    bodies = [
        {"query": lines[number], "texts": lines[number + 1 : number + 1 + TEXTS]}
        for number in range(0, len(lines) - TEXTS - 1, TEXTS)
    ]
    CACHE.mkdir(parents=True, exist_ok=True)
    file = CACHE / "rerank-bodies.jsonl"
    file.write_text("".join(f"{json.dumps(body)}\n" for body in bodies))
    speeds: dict[str, list[float]] = {name: [] for name in (*OURS, THEIRS)}
    answers: dict[str, list[dict[int, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        commands = prepare(Path(scratch) / "minilm")
        for _ in range(ROUNDS):
            for name, measured in speeds.items():
                measured.append(visit(name, commands[name], bodies, file, answers))
    differences = {name: largest_difference(answers[name], answers[THEIRS]) for name in OURS}
    if differences[OURS[1]] > TOLERANCE:
        raise SystemExit(f"scores in fp32 differ by {differences[OURS[1]]}")
    rows = [
        [
            name,
            f"{statistics.median(own):.1f}",
            f"{TEXTS * statistics.median(own):.0f}",
            f"{median_ratio(speeds[OURS[0]], own):.1f}x",
            f"{differences[name]:.0e}" if name in differences else "",
        ]
        for name, own in speeds.items()
    ]
    cpus = sorted(os.sched_getaffinity(0))
    block = f"{generated_block.table(HEADER, rows)}\n\n{hardware(cpus, cpus)[0]}"
    print(block)
    generated_block.write(PAGE, "tasks/rerank", block)


def prepare(checkpoint: Path) -> dict[str, list[str]]:
    """Write a random reranker and its bundles, and return each contender's command."""
    torch.manual_seed(0)
    make_model: Any = BertForSequenceClassification
    model = make_model(config_of("MiniLM", num_labels=1))
    for parameter in model.classifier.parameters():  # initial weights give all pairs one score
        torch.nn.init.normal_(parameter)
    save_with_tokenizer(model, checkpoint)
    python = [sys.executable, "-m"]
    commands = {THEIRS: [*python, "benchmarks.tasks.rerank_server", str(checkpoint)]}
    for name in OURS:
        export(checkpoint, name)
        commands[name] = [*python, "fillmask", "--bundle", str(bundle_of(checkpoint, name))]
    return commands


def visit(
    name: str,
    command: list[str],
    bodies: list[dict[str, Any]],
    file: Path,
    answers: dict[str, list[dict[int, float]]],
) -> float:
    """Measure one contender in one round, and keep its scores by index.

    Returns:
        Requests per second.
    """
    cpus = sorted(os.sched_getaffinity(0))
    with running(command, cpus, f"rerank-{name.replace(' ', '-')}") as server:
        url = f"http://{HOST}:{server.port}/rerank"
        ranks = [
            httpx.post(url, json=body, timeout=60).raise_for_status().json() for body in bodies
        ]
        answers[name] = [{one["index"]: one["score"] for one in each} for each in ranks]
        _, cell = (
            load(
                server.port,
                file,
                concurrency=CLIENTS,
                seconds=seconds,
                first=0,
                cpus=cpus,
                path="/rerank",
            )
            for seconds in (WARM_UP_S, SECONDS)
        )
    print(f"{name}: {cell.requests_per_s:.1f} requests/s", file=sys.stderr, flush=True)
    return cell.requests_per_s


def largest_difference(ours: list[dict[int, float]], theirs: list[dict[int, float]]) -> float:
    """Return the largest difference of two servers' scores of the same text."""
    return max(
        abs(score - other[index])
        for one, other in zip(ours, theirs, strict=True)
        for index, score in one.items()
    )


if __name__ == "__main__":
    main()

"""Requests/s of rerankers with 32 texts per query, for docs/rerank.md.

    .venv-dev/bin/python -m benchmarks.tasks.rerank

The reranker has the size of MiniLM-L6 and random weights, which do not affect the speed. The
contenders take turns. The run takes three minutes and needs a quiet machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import torch
from transformers import BertConfig, BertForSequenceClassification

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.texts import FILE
from fillmask.bundles.bundle import default_bundle_path
from tests.running_server import running_server

PAGE = Path(__file__).parents[2] / "docs" / "rerank.md"
TEXTS, CLIENTS, ROUNDS, SECONDS = 32, 4, 3, 6.0
TOLERANCE = 1e-3  # scores in fp32 against transformers
OURS = ("fillmask int8", "fillmask fp32")
THEIRS = "transformers behind FastAPI"


def main() -> None:
    """Measure the contenders in turns and write the table to the page."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    bodies = [
        {"query": lines[number], "texts": lines[number + 1 : number + 1 + TEXTS]}
        for number in range(0, len(lines) - TEXTS - 1, TEXTS)
    ]
    speeds: dict[str, list[float]] = {name: [] for name in (*OURS, THEIRS)}
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = make_checkpoint(Path(scratch) / "minilm")
        for name in OURS:
            export(checkpoint, name)
        differences = {}
        for _ in range(ROUNDS):
            answers = {}
            for name, measured in speeds.items():
                with server(checkpoint, name) as url:
                    answers[name] = [ask(url, body) for body in bodies]
                    requests_per_s(url, bodies, 2.0)  # warm-up
                    measured.append(requests_per_s(url, bodies, SECONDS))
                print(f"{name}: {measured[-1]:.1f} requests/s", file=sys.stderr, flush=True)
            for name in OURS:
                differences[name] = largest_difference(answers[name], answers[THEIRS])
    if differences[OURS[1]] > TOLERANCE:
        raise SystemExit(f"scores in fp32 differ by {differences[OURS[1]]}")
    cpus = sorted(os.sched_getaffinity(0))
    block = table(speeds, differences) + f"\n\n{hardware(cpus, cpus)[0]}"
    print(block)
    generated_block.write(PAGE, "tasks/rerank", block)


def table(speeds: dict[str, list[float]], differences: dict[str, float]) -> str:
    """Return the figures as a table in Markdown. A ratio is the median over the rounds."""
    lines = [
        (
            f"| contender | requests/s, {CLIENTS} clients | texts/s | fillmask int8 / this | "
            "largest difference |"
        ),
        "| --- | --: | --: | --: | --: |",
    ]
    for name, own in speeds.items():
        median = statistics.median(own)
        ratio = statistics.median(a / b for a, b in zip(speeds[OURS[0]], own, strict=True))
        difference = f"{differences[name]:.0e}" if name in differences else ""
        lines.append(
            f"| {name} | {median:.1f} | {TEXTS * median:.0f} | {ratio:.1f}x | {difference} |"
        )
    return "\n".join(lines)


def make_checkpoint(directory: Path) -> Path:
    """Write a random reranker with the tokenizer of the built-in model."""
    torch.manual_seed(0)
    make_config: Any = BertConfig
    config = make_config(
        vocab_size=30522,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=1,
    )
    model: Any = BertForSequenceClassification(config)
    for parameter in model.classifier.parameters():  # initial weights give all pairs one score
        torch.nn.init.normal_(parameter)
    model.save_pretrained(directory)
    tokenizer = json.loads((default_bundle_path() / "tokenizer.json").read_bytes())
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    special = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[MASK]"}
    settings: dict[str, Any] = {f"{name}_token": token for name, token in special.items()}
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    return directory


def export(checkpoint: Path, name: str) -> None:
    """Export a bundle beside the checkpoint, in the precision at the end of the name."""
    precision = name.rpartition(" ")[2]
    output = checkpoint.with_name(precision)
    command = [sys.executable, "-m", "fillmask_export", str(checkpoint), "--output", str(output)]
    subprocess.run([*command, "--precision", precision], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def server(checkpoint: Path, name: str) -> Iterator[str]:
    """Run a contender and yield its address."""
    if name in OURS:
        bundle = checkpoint.with_name(name.rpartition(" ")[2])
        with running_server("--bundle", str(bundle)) as served:
            yield served.url
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.tasks.rerank_server", str(checkpoint), str(port)]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command) as process:
        try:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"{url}/health/ready").status_code == httpx.codes.OK:
                        break
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()


def ask(url: str, body: dict[str, Any]) -> dict[int, float]:
    """Return the score of each text by its index."""
    ranks = httpx.post(f"{url}/rerank", json=body, timeout=60).raise_for_status().json()
    return {one["index"]: one["score"] for one in ranks}


def largest_difference(ours: list[dict[int, float]], theirs: list[dict[int, float]]) -> float:
    """Return the largest difference of two servers' scores of the same text."""
    return max(
        abs(score - other[index])
        for one, other in zip(ours, theirs, strict=True)
        for index, score in one.items()
    )


def requests_per_s(url: str, bodies: list[dict[str, Any]], seconds: float) -> float:
    """Return the answers per second to CLIENTS clients, each of which sends one after another."""
    done, stop = [0] * CLIENTS, threading.Event()

    def send(number: int) -> None:
        with httpx.Client(timeout=60) as client:
            while not stop.is_set():
                body = bodies[(number + done[number]) % len(bodies)]
                client.post(f"{url}/rerank", json=body).raise_for_status()
                done[number] += 1

    clients = [threading.Thread(target=send, args=(number,)) for number in range(CLIENTS)]
    start_s = time.perf_counter()
    for client in clients:
        client.start()
    time.sleep(seconds)
    stop.set()
    for client in clients:
        client.join()
    return sum(done) / (time.perf_counter() - start_s)


if __name__ == "__main__":
    main()

"""Documents/s of sparse vectors, for docs/sparse.md.

    .venv-dev/bin/python -m benchmarks.tasks.sparse PYTHON

PYTHON is the interpreter of an environment with `sentence-transformers[onnx,openvino]`, because its
backends need an older release of transformers. Documents have 128 tokens. Random weights do not
affect the speed. The head's bias leaves about 200 words per text, as in trained models. The
contenders take turns and use all CPUs. The run takes ten minutes and needs a quiet machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import torch
from tokenizers import Tokenizer
from transformers import BertForMaskedLM

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.page import median_ratio
from benchmarks.comparison.texts import texts_of_length
from benchmarks.tasks.checkpoints import (
    OURS,
    SIZES,
    bundle_of,
    config_of,
    export,
    save_with_tokenizer,
    serving,
)
from fillmask.bundles.bundle import default_bundle_path

PAGE = Path(__file__).parents[2] / "docs" / "sparse.md"
TOKENS, DOCUMENTS, ROUNDS, ACTIVE_WORDS = 128, 32, 5, 200
BACKENDS = ("torch", "onnx", "onnx int8", "openvino")
ALL_LOGITS = "onnxruntime, all logits in NumPy"
MEMORY_TEXTS, MEMORY_TOKENS = 32, 512


def main() -> None:
    """Measure the contenders in turns and write the tables to the page."""
    peers = sys.argv[1]
    rows, memory = [], ""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            checkpoint, documents = Path(scratch) / "checkpoint", Path(scratch) / "texts.json"
            texts = write_documents(DOCUMENTS, TOKENS)
            documents.write_text(json.dumps(texts))
            make_checkpoint(checkpoint, size, texts)
            for name in OURS:
                export(checkpoint, name, "--task", "sparse", "--rounding", "nearest")
            rows += measure(size, peers, checkpoint, documents)
            if not memory:
                memory = memory_mb(bundle_of(checkpoint, OURS[0]))
    cpus = sorted(os.sched_getaffinity(0))
    lines = [
        "| size | contender | documents/s | fillmask int8 / this |",
        "| --- | --- | --: | --: |",
    ]
    block = "\n".join([*lines, *rows, "", memory, "", hardware(cpus, cpus)[0]])
    print(block)
    generated_block.write(PAGE, "tasks/sparse", block)


def measure(size: str, peers: str, checkpoint: Path, documents: Path) -> list[str]:
    """Return the rows of the table for one size. A ratio is the median over the rounds."""
    names = [*OURS, *(f"Sentence Transformers, {one}" for one in BACKENDS), ALL_LOGITS]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with contextlib.ExitStack() as running:
        workers = {}
        for name in names:
            interpreter = sys.executable if name in OURS else peers
            source = bundle_of(checkpoint, name) if name in OURS else checkpoint
            command = [interpreter, "-m", "benchmarks.tasks.sparse_contenders"]
            workers[name] = running.enter_context(
                subprocess.Popen(
                    [*command, name, str(source), str(documents)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            ask(workers[name])  # loads, and warms up
        for _ in range(ROUNDS):
            for name, worker in workers.items():
                seconds[name].append(ask(worker))
        for worker in workers.values():
            worker.communicate()
    rows = []
    for name, own in seconds.items():
        speed = DOCUMENTS / statistics.median(own)
        ratio = median_ratio(own, seconds[OURS[0]])
        rows.append(f"| {size} | {name} | {speed:.1f} | {ratio:.1f}x |")
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def ask(worker: subprocess.Popen[str]) -> float:
    """Return the seconds that a worker needs for all documents."""
    assert worker.stdin is not None  # noqa: S101 - both are pipes
    assert worker.stdout is not None  # noqa: S101
    worker.stdin.write("\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def write_documents(count: int, tokens: int) -> list[str]:
    tokenizer = Tokenizer.from_file(str(default_bundle_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    return texts_of_length(lambda text: tokenizer.encode(text).ids, tokens, count)


@torch.inference_mode()
def make_checkpoint(directory: Path, size: str, texts: Sequence[str]) -> None:
    """Write a random masked language model whose head leaves few words per text."""
    torch.manual_seed(0)
    model: Any = BertForMaskedLM(config_of(size))
    model.eval()
    tokenizer = Tokenizer.from_file(str(default_bundle_path() / "tokenizer.json"))
    ids = [tokenizer.encode(text).ids for text in texts[:4]]
    best = model(torch.tensor(ids)).logits.amax(1)
    threshold = best.topk(ACTIVE_WORDS, dim=1).values[:, -1].mean()
    model.cls.predictions.bias.sub_(threshold)
    save_with_tokenizer(model, directory)


def memory_mb(bundle: Path) -> str:
    """Return a sentence about the memory of a service with long texts."""
    texts = write_documents(MEMORY_TEXTS, MEMORY_TOKENS)
    with serving(bundle) as (url, server):
        idle_mb = server.rss_bytes() / 2**20
        Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # resets the peak
        answer = httpx.post(f"{url}/embed_sparse", json={"inputs": texts}, timeout=120)
        answer.raise_for_status()
        peak_mb = server.peak_rss_bytes() / 2**20
    return (
        f"One request with {MEMORY_TEXTS} texts of {MEMORY_TOKENS} tokens raises the memory of an "
        f"idle service with the int8 MiniLM from {idle_mb:.0f} to {peak_mb:.0f} MiB."
    )


if __name__ == "__main__":
    main()

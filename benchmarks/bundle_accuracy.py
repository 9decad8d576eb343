"""Held-out figures of a bundle, through the runtime that serves it, beside its checkpoint's.

    .venv-dev/bin/python benchmarks/bundle_accuracy.py BUNDLE CHECKPOINT HELD_OUT [HELD_OUT ...]

BERT's masking with a fixed seed, rows of 128 and 256 tokens: PyTorch in fp32 and the served graph
predict the same positions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from model.checkpoint import load_checkpoint
from model.corpus import SpecialTokens, pack_rows, read_documents, read_tokenizer
from model.evaluate import EVALUATION_SEED, HeldOutFigures, evaluate
from model.masking import Corrupted, Masker
from service.batch import Batch, Request
from service.bundle import read_bundle
from service.runtime import Runtime

ROW_TOKENS = (128, 256)
BATCH_ROWS = 32  # as in model.evaluate: the masking follows the batches


def main() -> None:
    """Print the table."""
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    bundle = read_bundle(Path(sys.argv[1]))
    checkpoint = load_checkpoint(Path(sys.argv[2]))
    runtime = Runtime(bundle.model_path)
    tokenizer = read_tokenizer(bundle.tokenizer_path.read_bytes())
    special = SpecialTokens.of(tokenizer)
    masker = Masker(bundle.architecture.vocab_size, special.mask, special.all)
    print("| text | row tokens | what | top 1 | top 5 | loss | perplexity | predicted |")
    print("|---|---|---|---|---|---|---|---|")
    for file in map(Path, sys.argv[3:]):
        for row_tokens in ROW_TOKENS:
            if row_tokens > bundle.max_tokens:
                continue
            rows = pack_rows(read_documents([file]), tokenizer, special, row_tokens)
            pytorch = evaluate(checkpoint.model, rows, masker, BATCH_ROWS)
            served = _evaluate_served(runtime, rows, masker)
            for what, figures in (
                ("PyTorch fp32", pytorch),
                (f"bundle {bundle.precision}", served),
            ):
                print(
                    f"| {file.name} | {row_tokens} | {what} "
                    f"| {100 * figures.top_1:.2f} % | {100 * figures.top_5:.2f} % "
                    f"| {figures.loss:.3f} | {figures.perplexity:.1f} "
                    f"| {figures.predicted_tokens} |",
                    flush=True,
                )


def _evaluate_served(runtime: Runtime, rows: NDArray[np.int32], masker: Masker) -> HeldOutFigures:
    log_probs, first, among_five = [], 0, 0
    for corrupted in _corruptions(rows, masker):
        labels = np.split(
            corrupted.labels.numpy(), np.cumsum(corrupted.selected.sum(dim=1).numpy())[:-1]
        )
        for ids, selected, label in zip(
            corrupted.input_ids.numpy(), corrupted.selected.numpy(), labels, strict=True
        ):
            if len(label) == 0:
                continue
            request = Request(ids, np.flatnonzero(selected), 5, label[:, None])
            outputs = runtime.run(Batch.pack([request]))
            log_probs.append(outputs.target_log_probs[:, 0])
            first += int((outputs.top_ids[:, 0] == label).sum())
            among_five += int((outputs.top_ids == label[:, None]).any(axis=1).sum())
    every = np.concatenate(log_probs)
    loss = -float(every.mean(dtype=np.float64))
    count = len(every)
    return HeldOutFigures(loss, math.exp(loss), first / count, among_five / count, count)


def _corruptions(rows: NDArray[np.int32], masker: Masker) -> Iterator[Corrupted]:
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    for start in range(0, len(rows), BATCH_ROWS):
        yield masker(torch.from_numpy(rows[start : start + BATCH_ROWS]).long(), generator)


if __name__ == "__main__":
    main()

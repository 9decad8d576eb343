"""Held-out figures of a bundle, through the runtime that serves it, beside its checkpoint's.

    .venv-dev/bin/python benchmarks/bundle_accuracy.py BUNDLE CHECKPOINT HELD_OUT [HELD_OUT ...]

BERT's masking with a fixed seed, rows of 128 and 256 tokens: PyTorch in fp32 and the served graph
predict the same positions. In brackets are 95 % bootstrap intervals over rows.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

from model.checkpoint import load_checkpoint
from model.corpus import SpecialTokens, pack_rows, read_documents, read_tokenizer
from model.evaluate import TOP_K, Predictions, RowScores, evaluate, score
from model.masking import Corrupted, Masker
from service.batch import Batch, Request
from service.bundle import read_bundle
from service.runtime import Runtime

ROW_TOKENS = (128, 256)


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
            for what, scores in (
                ("PyTorch fp32", evaluate(checkpoint.model, rows, masker)),
                (f"bundle {bundle.precision}", score(partial(_predict, runtime), rows, masker)),
            ):
                print(f"| {file.name} | {row_tokens} | {what} | {_cells(scores)} |", flush=True)


def _predict(runtime: Runtime, corrupted: Corrupted) -> Predictions:
    """A run of the served graph for each row, as the service would."""
    outputs = []
    labels = corrupted.labels.numpy()
    for ids, selected in zip(corrupted.input_ids.numpy(), corrupted.selected.numpy(), strict=True):
        positions = np.flatnonzero(selected)
        label, labels = labels[: len(positions), None], labels[len(positions) :]
        if len(positions):
            outputs.append(runtime.run(Batch.pack([Request(ids, positions, TOP_K, label)])))
    return Predictions(
        label_log_probs=np.concatenate([output.target_log_probs[:, 0] for output in outputs]),
        top_ids=np.concatenate([output.top_ids for output in outputs]),
    )


def _cells(scores: RowScores) -> str:
    figures, intervals = scores.figures(), scores.intervals()
    shares = [
        f"{100 * share:.2f} % ({100 * low:.1f} to {100 * high:.1f})"
        for share, (low, high) in (
            (figures.top_1, intervals.top_1),
            (figures.top_5, intervals.top_5),
        )
    ]
    low, high = intervals.loss
    loss = f"{figures.loss:.3f} ({low:.2f} to {high:.2f})"
    counts = [f"{figures.perplexity:.1f}", f"{figures.predicted_tokens:,}"]
    return " | ".join([*shares, loss, *counts])


if __name__ == "__main__":
    main()

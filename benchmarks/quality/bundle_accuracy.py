"""Held-out accuracy of a bundle in the service's runtime and of its checkpoint in PyTorch.

    .venv-dev/bin/python -m benchmarks.quality.bundle_accuracy BUNDLE CHECKPOINT HELD_OUT...

BERT's masking with a fixed seed selects positions in rows of 128 and 256 tokens and in short texts.
PyTorch in fp32 and the served graph predict the same positions. Parentheses contain 95 % bootstrap
intervals over rows. The script writes the table of the built-in bundle into the model card.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import generated_block
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_model.bootstrap import EVALUATION_SEED
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.documents import read_documents
from fillmask_model.pretraining.evaluation import TOP_K, Predictions, RowScores, evaluate, score
from fillmask_model.pretraining.masking import MaskedBatch, Masker
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.pretraining.short_texts import short_rows
from fillmask_model.tokenizers.special_tokens import SpecialTokens, read_tokenizer

ROW_TOKENS = (128, 256)


def main() -> None:
    """Print the accuracy of the bundle and of the checkpoint.

    The function also writes the table of the built-in bundle into the model card.
    """
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    bundle = read_bundle(Path(sys.argv[1]))
    checkpoint = load_checkpoint(Path(sys.argv[2]))
    runtime = Runtime(bundle.model_path)
    tokenizer = read_tokenizer(bundle.tokenizer_path.read_bytes())
    special = SpecialTokens.from_tokenizer(tokenizer)
    masker = Masker(bundle.architecture.vocab_size, special.mask, special.all)
    lines = [
        "| text | rows | model | top 1 | top 5 | loss | perplexity | predictions |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for file in map(Path, sys.argv[3:]):
        short = short_rows(read_documents([file]), tokenizer, special, EVALUATION_SEED)
        kinds = {"short texts": list(short.values())} | {
            f"{tokens} tokens": [pack_rows(read_documents([file]), tokenizer, special, tokens)]
            for tokens in ROW_TOKENS
            if tokens <= bundle.max_tokens
        }
        for kind, groups in kinds.items():
            for what, scores in (
                ("PyTorch fp32", evaluate(checkpoint.model, groups, masker)),
                (f"bundle {bundle.precision}", score(partial(_predict, runtime), groups, masker)),
            ):
                lines.append(f"| {file.name} | {kind} | {what} | {_cells(scores)} |")
                print(lines[-1], flush=True)
    if bundle.path.resolve() == default_bundle_path():
        table = "\n".join(lines)
        generated_block.write(generated_block.MODEL_CARD, "quality/bundle_accuracy", table)


def _predict(runtime: Runtime, masked: MaskedBatch) -> Predictions:
    """Predict with one run of the served graph per row."""
    log_probs, top_ids = [np.empty(0, np.float32)], [np.empty((0, TOP_K), np.int64)]
    labels = masked.labels.numpy()
    for ids, selected in zip(masked.input_ids.numpy(), masked.selected.numpy(), strict=True):
        positions = np.flatnonzero(selected)
        label, labels = labels[: len(positions), None], labels[len(positions) :]
        if len(positions):
            output = runtime.run(Batch.pack([ModelPass(ids, positions, TOP_K, label)]))
            log_probs.append(output.target_log_probs[:, 0])
            top_ids.append(output.top_ids)
    return Predictions(np.concatenate(log_probs), np.concatenate(top_ids))


def _cells(scores: RowScores) -> str:
    figures, intervals = scores.metrics(), scores.intervals()
    shares = [
        f"{100 * share:.2f} % ({100 * low:.1f} to {100 * high:.1f})"
        for share, (low, high) in (
            (figures.top_1, intervals["top_1"]),
            (figures.top_5, intervals["top_5"]),
        )
    ]
    low, high = intervals["loss"]
    loss = f"{figures.loss:.3f} ({low:.2f} to {high:.2f})"
    counts = [f"{figures.perplexity:.1f}", f"{figures.predicted_tokens:,}"]
    return " | ".join([*shares, loss, *counts])


if __name__ == "__main__":
    main()

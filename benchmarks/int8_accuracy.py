"""What rounding a checkpoint's weights to int8 costs on held-out text.

    .venv-dev/bin/python benchmarks/int8_accuracy.py CHECKPOINT HELD_OUT [HELD_OUT ...]

Prints held-out figures (BERT's masking, fixed seed) of the original and of the rounded weights, at
rows of 128 and 256 tokens.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tokenizers import Tokenizer

from export.weights import round_to_int8
from model.checkpoint import load_checkpoint
from model.corpus import SpecialTokens, pack_rows, read_documents
from model.evaluate import evaluate
from model.masking import Masker

ROW_TOKENS = (128, 256)


def main() -> None:
    """Print the table."""
    checkpoint = load_checkpoint(Path(sys.argv[1]))
    held_out = [Path(name) for name in sys.argv[2:]]
    if checkpoint.tokenizer_json is None or not held_out:
        raise SystemExit(__doc__)
    tokenizer = Tokenizer.from_str(checkpoint.tokenizer_json.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    special = SpecialTokens.of(tokenizer)
    model = checkpoint.model
    masker = Masker(model.config.vocab_size, special.mask, special.all)
    print("| text | row tokens | weights | top 1 | top 5 | loss | perplexity | predicted |")
    print("|---|---|---|---|---|---|---|---|")
    for weights in ("fp32", "int8"):
        if weights == "int8":
            round_to_int8(model)
        for file in held_out:
            for row_tokens in ROW_TOKENS:
                rows = pack_rows(read_documents([file]), tokenizer, special, row_tokens)
                figures = evaluate(model, rows, masker)
                print(
                    f"| {file.name} | {row_tokens} | {weights} "
                    f"| {100 * figures.top_1:.2f} % | {100 * figures.top_5:.2f} % "
                    f"| {figures.loss:.3f} | {figures.perplexity:.1f} "
                    f"| {figures.predicted_tokens} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

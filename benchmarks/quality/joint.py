"""Accuracy of the independent and the joint strategy on pairs of masked words.

    .venv-dev/bin/python -m benchmarks.quality.joint [BUNDLE [TEXTS]]

The script masks random pairs of neighbouring one-token words with a fixed seed. TEXTS is a file
with one text per line. The default TEXTS is the held-out sample of the comparison
(comparison/TEXTS.md).
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.comparison.texts import FILE as TEXTS
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, PassOutputs
from fillmask.engine.runtime import Runtime
from fillmask.parameters.fill_mask import Order
from fillmask.tasks.fill_mask.joint import fill_jointly
from fillmask.tokenization.tokenizer import Tokenizer

PAIRS_A_TEXT = 3
ORDERS: tuple[Order, ...] = ("confidence", "left_to_right")


def main() -> None:
    """Print the share of correct pairs by strategy and order of filling."""
    bundle = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    texts = Path(sys.argv[2]) if len(sys.argv) > 2 else TEXTS
    right, pairs = asyncio.run(compare(bundle, texts.read_text(encoding="utf-8").splitlines()))
    print("| filled | pairs | both right |\n|---|---|---|")
    for way, count in right.items():
        print(f"| {way} | {pairs} | {100 * count / pairs:.1f} % |")


async def compare(directory: Path, texts: Sequence[str]) -> tuple[Counter[str], int]:
    """Count the correct pairs by strategy and order of filling.

    Returns:
        The counts and the number of pairs.
    """
    bundle = read_bundle(directory)
    size = bundle.architecture.vocab_size
    tokenizer, runtime = Tokenizer.from_bundle(bundle), Runtime(bundle.model_path)

    async def submit(requests: Sequence[ModelPass]) -> list[PassOutputs]:
        batch = Batch.pack(requests)
        return batch.unpack(runtime.run(batch))

    right, pairs = Counter(dict.fromkeys(("each alone", *ORDERS), 0)), 0
    draw = random.Random(0)  # noqa: S311 - a choice, not a secret
    for text in texts:
        for masked, expected in _pairs(text, tokenizer, bundle.max_tokens, draw):
            pairs += 1
            encoded = tokenizer.encode(masked)
            asked = 1 + len(tokenizer.special_token_ids)
            none = np.empty((2, 0), dtype=np.int64)
            request = ModelPass(encoded.input_ids, encoded.mask_positions, asked, none)
            [answer] = await submit([request])
            alone = [
                next(token for token in row if token not in tokenizer.special_token_ids)
                for row in answer.top_ids.tolist()
            ]
            right["each alone"] += alone == expected
            for order in ORDERS:
                [best] = await fill_jointly(
                    masked, encoded, tokenizer, submit, vocab_size=size, top_k=1, order=order
                )
                right[order] += list(best.tokens) == expected
    return right, pairs


def _pairs(
    text: str, tokenizer: Tokenizer, max_tokens: int, draw: random.Random
) -> list[tuple[str, list[int]]]:
    """Mask random pairs of neighbouring words.

    Returns:
        Pairs of a masked text and its two expected tokens. The list may be empty.
    """
    words = tokenizer.encode_words(text)
    if len(words.input_ids) > max_tokens:
        return []
    ids = words.input_ids[words.positions].tolist()
    counts = Counter(words.words.tolist())
    alone = [
        counts[word] == 1 and text[start:end].isalpha()
        for word, (start, end) in zip(words.words.tolist(), words.spans, strict=True)
    ]
    places = [i for i in range(len(ids) - 1) if alone[i] and alone[i + 1]]
    cases = []
    for place in sorted(draw.sample(places, min(PAIRS_A_TEXT, len(places)))):
        (start, end), (second, stop) = words.spans[place], words.spans[place + 1]
        mask = tokenizer.mask_token
        masked = f"{text[:start]}{mask}{text[end:second]}{mask}{text[stop:]}"
        cases.append((masked, ids[place : place + 2]))
    return cases


if __name__ == "__main__":
    main()

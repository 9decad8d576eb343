"""Texts of the comparison with one to three masked words each."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sized
from itertools import cycle, islice
from pathlib import Path

FILE = Path(__file__).parent / "texts.txt"
MASK_TOKEN = "[MASK]"  # noqa: S105 - not a password
TOP_K = 5
SEED = 0
_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
# numbers of masks per text, and their weights
_MASKS, _WEIGHTS = (1, 2, 3), (70, 20, 10)


def mask_words(text: str, count: int, rng: random.Random) -> str:
    """Mask up to `count` random words of a text."""
    spans = [match.span() for match in _WORD.finditer(text)]
    for start, end in sorted(rng.sample(spans, min(count, len(spans))), reverse=True):
        text = text[:start] + MASK_TOKEN + text[end:]
    return text


def masked_texts() -> list[str]:
    """Return the texts of the comparison, masked with a fixed seed."""
    rng = random.Random(SEED)  # noqa: S311 - a choice, not a secret
    return [
        mask_words(text, rng.choices(_MASKS, _WEIGHTS)[0], rng)
        for text in FILE.read_text(encoding="utf-8").splitlines()
    ]


def texts_of_length(
    encode: Callable[[str], Sized], tokens: int, count: int, start: str = ""
) -> list[str]:
    """Return texts of exactly `tokens` tokens, special tokens included, from different words.

    Args:
        start: how each text begins.
    """
    words = FILE.read_text(encoding="utf-8").split()
    texts = []
    for first in range(0, len(words) // count * count, len(words) // count):
        text = start
        for word in islice(cycle(words), first, None):
            longer = f"{text} {word}".strip()
            length = len(encode(longer))
            text = longer if length <= tokens else text
            if length == tokens:
                break
        texts.append(text)
    return texts


def request_body(text: str) -> str:
    """Return the JSON body of a request."""
    return json.dumps({"inputs": text, "parameters": {"top_k": TOP_K}})

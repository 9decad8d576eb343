"""Texts of the comparison with one to three masked words each."""

from __future__ import annotations

import json
import random
import re
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


def request_body(text: str) -> str:
    """Return the JSON body of a request."""
    return json.dumps({"inputs": text, "parameters": {"top_k": TOP_K}})

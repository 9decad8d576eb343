"""Where words begin and end in a text.

Words are those of the tokenizer's pre-tokenizer, divided further at white space (Gemma's form of
tokenizer has one word per text) and, in scripts that put no spaces between words, at each token.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from fillmask.arrays import IntArray

# CJK with its punctuation but without Hangul; Thai, Lao, Tibetan, Myanmar and Khmer
_UNSPACED = re.compile(
    "[\u2e80-\u312f\u31a0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff9f\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]"
)
# No word of a language has more tokens. DNA, for example, is one word of the pre-tokenizer.
MAX_WORD_TOKENS = 16


def is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


def divides(before: str, after: str) -> bool:
    """Return whether a word ends between two adjacent characters. Either may be missing."""
    if before.isspace() or after.isspace():
        return True
    if unicodedata.category(after or " ").startswith("M"):
        return False
    return is_unspaced(before) or is_unspaced(after)


def word_indices(
    text: str, spans: Sequence[tuple[int, int]], word_ids: Sequence[object]
) -> IntArray:
    """Return the index (t,) int64 of the word of each token, ascending from 0.

    Args:
        text: the text, or the joined text of a pair.
        spans: start and end of each token in the text, in characters, without white space.
        word_ids: the pre-tokenizer's word of each token.
    """
    begins = np.ones(len(spans), dtype=np.int64)
    for index in range(1, len(spans)):
        if word_ids[index] != word_ids[index - 1]:
            continue
        (before, end), (start, _) = spans[index - 1], spans[index]
        # bytes of one character have the same span, and a space belongs to the word after it
        space_before = start == end and text[before:end].isspace()
        inside = start in {before, 0} or start < end or space_before
        begins[index] = not inside and (
            divides(text[start - 1], text[start : start + 1])
            or any(character.isspace() for character in text[end:start])
        )
    words = begins.cumsum() - 1
    begins[np.bincount(words)[words] > MAX_WORD_TOKENS] = 1
    indices: IntArray = begins.cumsum() - 1
    return indices

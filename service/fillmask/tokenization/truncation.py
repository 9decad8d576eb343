"""Truncation of texts that exceed the model's input."""

from collections.abc import Callable, Sequence

import numpy as np

from fillmask.bundles.description import TruncationSide
from fillmask.errors import InvalidRequestError
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords

# Encoding takes up to 500 bytes of memory for each token, and a token may be one character.
_STEP_CHARS = 2**14
# more than the pieces of a word, since the last word of a shortened text may be incomplete
_SPARE_TOKENS = 1_000


def shorten(text: str, max_tokens: int, side: TruncationSide, count: Callable[[str], int]) -> str:
    """Return a text without characters whose tokens `truncate` removes in any case.

    Only tokens tell what is removed, because white space and unknown words have few of them.

    Args:
        count: function that counts the tokens of a short text.
    """
    enough, counted = max_tokens + _SPARE_TOKENS, 0
    for chars in range(_STEP_CHARS, len(text), _STEP_CHARS):
        kept, step = slice(chars), slice(chars - _STEP_CHARS, chars)
        if side == "left":
            kept, step = slice(-chars, None), slice(-chars, _STEP_CHARS - chars or None)
        counted += count(text[step])
        if counted >= enough and step != kept:  # steps that split a word count too many tokens
            counted = count(text[kept])
        if counted >= enough:
            return text[kept]
    return text


def truncate(
    words: EncodedWords,
    max_tokens: int,
    label: str,
    side: TruncationSide = "right",
    growth: Sequence[float] = (1, 1),
) -> EncodedText:
    """Remove tokens at one side of a text, or of the longer part of a pair, until it fits.

    The result is that of the strategy longest_first in Hugging Face's tokenizers.

    Args:
        max_tokens: maximum length of the result, including special tokens.
        growth: length of each part of a pair before `shorten` in relation to `words`.

    Raises:
        InvalidRequestError: the special tokens alone exceed the limit.
    """
    room = max_tokens - (len(words.input_ids) - len(words.positions))
    if room < 1:
        raise InvalidRequestError(f"{label} has no room for its tokens; send it without a pair.")
    first, second = (int((words.parts == part).sum() * growth[part]) for part in (0, 1))
    shorter = min(first, second, room // 2)
    kept = (room - shorter, shorter) if first > second else (shorter, room - shorter)
    is_kept = np.ones(len(words.input_ids), bool)
    for part, count in enumerate(kept):
        own = words.positions[words.parts == part]
        is_kept[own[: max(0, len(own) - count)] if side == "left" else own[count:]] = False
    types = None if words.token_types is None else words.token_types[is_kept]
    return EncodedText(words.input_ids[is_kept], words.positions[:0], (), types)

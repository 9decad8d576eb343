"""Truncation of texts that exceed the model's input."""

import numpy as np

from fillmask.bundles.description import TruncationSide
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords


def cut(text: InputText, max_chars: int, side: TruncationSide) -> InputText:
    """Return a text, or a pair of texts, of at most this many characters each."""
    kept = slice(-max_chars, None) if side == "left" else slice(max_chars)
    if isinstance(text, TextPair):
        return TextPair(text.text[kept], text.text_pair[kept])
    return text[kept]


def truncate(
    words: EncodedWords, max_tokens: int, label: str, side: TruncationSide = "right"
) -> EncodedText:
    """Remove tokens at one side of a text, or of the longer part of a pair, until it fits.

    The result is that of the strategy longest_first in Hugging Face's tokenizers.

    Args:
        words: tokens of the text.
        max_tokens: maximum length of the result, including special tokens.
        label: name of the text in error messages.

    Raises:
        InvalidRequestError: the special tokens alone exceed the limit.
    """
    room = max_tokens - (len(words.input_ids) - len(words.positions))
    if room < 1:
        raise InvalidRequestError(f"{label} has no room for its tokens; send it without a pair.")
    first, second = (int((words.parts == part).sum()) for part in (0, 1))
    shorter = min(first, second, room // 2)
    kept = (room - shorter, shorter) if first > second else (shorter, room - shorter)
    is_kept = np.ones(len(words.input_ids), bool)
    for part, count in enumerate(kept):
        own = words.positions[words.parts == part]
        is_kept[own[: max(0, len(own) - count)] if side == "left" else own[count:]] = False
    types = None if words.token_types is None else words.token_types[is_kept]
    return EncodedText(words.input_ids[is_kept], words.positions[:0], (), types)

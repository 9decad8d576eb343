"""Truncation of texts that exceed the model's input."""

import numpy as np

from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords


def cut(text: InputText, max_chars: int) -> InputText:
    """Return a text, or a pair of texts, of at most this many characters each."""
    if isinstance(text, TextPair):
        return TextPair(text.text[:max_chars], text.text_pair[:max_chars])
    return text[:max_chars]


def truncate(words: EncodedWords, max_tokens: int, label: str) -> EncodedText:
    """Remove the last tokens of a text, or of the longer part of a pair, until it fits.

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
        is_kept[words.positions[words.parts == part][count:]] = False
    types = None if words.token_types is None else words.token_types[is_kept]
    return EncodedText(words.input_ids[is_kept], words.positions[:0], (), types)

"""Rows of token ids that contain documents with a separator between them.

All rows have the same length and need no padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from fillmask_model.tokenizers.special_tokens import SpecialTokens

TokenRows: TypeAlias = NDArray[np.integer[Any]]  # (N, T) ids of any integer type

_TEXTS_PER_CALL = 512  # enough texts for every core, but few enough to limit memory


@lru_cache(maxsize=2)  # one order for packed rows and one for short texts
def epoch_order(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return a seeded permutation (count,) of the indices for an epoch."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def tokenized(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """Yield the token ids of texts without special tokens."""
    encode = partial(tokenizer.encode_batch_fast, add_special_tokens=False)
    return (encoding.ids for encoding in encodings(texts, encode))


def encodings(
    texts: Iterable[Any], encode: Callable[[list[Any]], list[Encoding]]
) -> Iterator[Encoding]:
    """Yield the encodings of texts or pairs by a method of a tokenizer that takes several."""
    stream = iter(texts)
    while call := list(islice(stream, _TEXTS_PER_CALL)):
        yield from encode(call)


def pack_rows(
    documents: Iterable[str], tokenizer: Tokenizer, special: SpecialTokens, row_tokens: int
) -> NDArray[np.int32]:
    """Pack documents into rows `[CLS] text [SEP]` of exactly row_tokens tokens.

    Args:
        documents: texts to join with the separator token.
        tokenizer: tokenizer, used without its post-processor.
        row_tokens: length of a row in tokens. The result excludes an incomplete last row.

    Returns:
        Token ids (rows, row_tokens), int32.
    """
    pieces = [np.array([*ids, special.sep], np.int32) for ids in tokenized(documents, tokenizer)]
    body = row_tokens - 2
    tokens = np.concatenate(pieces) if pieces else np.empty(0, np.int32)
    count = len(tokens) // body
    rows = np.empty((count, row_tokens), np.int32)
    rows[:, 0] = special.cls
    rows[:, 1:-1] = tokens[: count * body].reshape(count, body)
    rows[:, -1] = special.sep
    return rows

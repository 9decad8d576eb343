"""Short texts that stand alone, each a row of its own length: what callers of a service send.

Rows that are cut from a stream of text begin and end anywhere and are always full. An encoder that
has seen nothing else is at a loss with a single sentence (LOG.md, 2026-11-22).
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from model.data.corpus import SpecialTokens, TokenRows, epoch_order

SHORTEST_TOKENS, LONGEST_TOKENS = 6, 64  # of a row, special tokens included
MOST_SENTENCES = 3
TEXTS_PER_CALL = 2_000
# an initial and a title end no sentence
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"')])|(?<=[.!?][\"')]{2}))"
    r"(?<![A-Z]\.)(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!St\.)\s+"
)


class ShortTexts:
    """Batches of texts of equal length, so that none needs padding.

    Args:
        rows: (N, T) framed token ids by their T.
        batch_tokens: tokens in a batch, about: a batch has as many rows as fit, one at least.
        seed: of their order.
    """

    def __init__(self, rows: Mapping[int, TokenRows], batch_tokens: int, seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._batches = [
            (tokens, part)
            for tokens, texts in sorted(rows.items())
            for size in [max(1, batch_tokens // tokens)]
            for part in (slice(start, start + size) for start in range(0, len(texts), size))
        ]

    def batch(self, number: int) -> TokenRows:
        """(N, T): the run's `number`-th; in each epoch the texts are mixed anew."""
        epoch, index = divmod(number, len(self._batches))
        tokens, part = self._batches[epoch_order(len(self._batches), self._seed, epoch)[index]]
        texts = self._rows[tokens]
        order = np.random.default_rng([self._seed, epoch, tokens]).permutation(len(texts))
        chosen: TokenRows = texts[order[part]]
        return chosen


def short_rows(
    documents: Iterable[str],
    tokenizer: Tokenizer,
    special: SpecialTokens,
    seed: int,
    longest_tokens: int = LONGEST_TOKENS,
) -> dict[int, NDArray[np.int32]]:
    """Rows `[CLS] text [SEP]` by their length, of 6 tokens and more.

    Args:
        documents: texts of lines; a line is one text, or several of one to three sentences.
        tokenizer: used without its post-processor.
        special: its framing ids.
        seed: of how many sentences stay together.
        longest_tokens: of a row; longer texts are left out.

    Raises:
        ValueError: no text is of such a length.
    """
    texts = _texts(documents, np.random.default_rng(seed))
    # four bytes a token, where lists of numbers take forty: a large corpus has 150 million
    ids: dict[int, array[int]] = defaultdict(lambda: array("i"))
    while call := list(islice(texts, TEXTS_PER_CALL)):
        for encoding in tokenizer.encode_batch_fast(call, add_special_tokens=False):
            row = [special.cls, *encoding.ids, special.sep]
            if SHORTEST_TOKENS <= len(row) <= longest_tokens:
                ids[len(row)].extend(row)
    if not ids:
        raise ValueError(f"no text has {SHORTEST_TOKENS} to {longest_tokens} tokens")
    return {n: np.frombuffer(ids[n], np.int32).reshape(-1, n) for n in sorted(ids)}


def _texts(documents: Iterable[str], generator: np.random.Generator) -> Iterator[str]:
    for document in documents:
        for line in document.splitlines():
            sentences = iter(_SENTENCE_END.split(line.strip()))
            while text := " ".join(islice(sentences, _draw(generator))):
                yield text


def _draw(generator: np.random.Generator) -> int:
    """How many sentences stay together."""
    return int(generator.integers(1, MOST_SENTENCES + 1))

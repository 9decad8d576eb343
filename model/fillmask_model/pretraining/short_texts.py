"""Training rows of single short texts, similar to the requests of clients.

Packed rows are always full. They begin and end in the middle of sentences. Training on packed rows
alone gives an encoder that is less accurate on single sentences (docs/decisions/019).
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

from fillmask_model.pretraining.rows import TokenRows, epoch_order, tokenized
from fillmask_model.tokenizers.special_tokens import SpecialTokens

# initials and titles do not end a sentence
SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"')])|(?<=[.!?][\"')]{2}))"
    r"(?<![A-Z]\.)(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!St\.)\s+"
)
SENTENCE_OR_LINE_END = re.compile(rf"{SENTENCE_END.pattern}|\n")
SHORTEST_TOKENS, LONGEST_TOKENS = 6, 64  # length of a row, special tokens included
MOST_SENTENCES = 3


class ShortTexts:
    """Batches of texts of equal length, without padding.

    Args:
        rows: (N, T) token ids with special tokens, by T.
        batch_tokens: maximum number of tokens in a batch of several rows.
        seed: seed of the order of texts and batches.
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
        """Return a batch (N, T) of the run by its number, from 0.

        Each epoch shuffles the texts again.
        """
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
    """Cut documents into rows `[CLS] text [SEP]`, grouped by length.

    A text consists of one to three sentences of a line. The result excludes rows of fewer than 6
    tokens.

    Args:
        documents: texts of any length.
        tokenizer: tokenizer, used without its post-processor.
        seed: seed of the number of sentences per text.
        longest_tokens: maximum length of a row in tokens.

    Raises:
        ValueError: no text has an allowed length.
    """
    texts = _texts(documents, np.random.default_rng(seed))
    # an array takes 4 bytes per token instead of a list's 40, for up to 150 million tokens
    ids: dict[int, array[int]] = defaultdict(lambda: array("i"))
    for text in tokenized(texts, tokenizer):
        row = [special.cls, *text, special.sep]
        if SHORTEST_TOKENS <= len(row) <= longest_tokens:
            ids[len(row)].extend(row)
    if not ids:
        raise ValueError(
            f"the corpus has no texts of {SHORTEST_TOKENS} to {longest_tokens} tokens; add text"
        )
    return {n: np.frombuffer(ids[n], np.int32).reshape(-1, n) for n in sorted(ids)}


def _texts(documents: Iterable[str], generator: np.random.Generator) -> Iterator[str]:
    for document in documents:
        for line in document.splitlines():
            sentences = iter(SENTENCE_END.split(line.strip()))
            while text := " ".join(islice(sentences, _draw_sentence_count(generator))):
                yield text


def _draw_sentence_count(generator: np.random.Generator) -> int:
    return int(generator.integers(1, MOST_SENTENCES + 1))

"""Sentences of documents as arrays of token ids and positions.

Next-sentence prediction cuts its segments at the ends of sentences. The tokenizer reads complete
documents, so that a sentence has the same tokens as in a packed row.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fillmask_model.pretraining.rows import DOCUMENTS_PER_CALL, TokenRows

# initials and titles do not end a sentence
SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"')])|(?<=[.!?][\"')]{2}))"
    r"(?<![A-Z]\.)(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!St\.)\s+"
)
_SENTENCE_OR_LINE_END = re.compile(rf"{SENTENCE_END.pattern}|\n")


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """Token ids of documents with the starts of their sentences.

    Attributes:
        tokens: ids of all documents without special tokens.
        starts: (S + 1,) int64, index of each sentence's first token. The last entry is the number
            of tokens.
        documents: (D + 1,) int64, index of each document's first sentence. The last entry is the
            number S of sentences.
    """

    tokens: TokenRows
    starts: NDArray[np.int64]
    documents: NDArray[np.int64]

    @classmethod
    def from_arrays(cls, arrays: dict[str, TokenRows]) -> Sentences:
        """Create the object from the arrays of `to_arrays`, with integers of any type."""
        starts, documents = (arrays[name].astype(np.int64) for name in ("starts", "documents"))
        return cls(arrays["tokens"], starts, documents)

    def to_arrays(self) -> dict[str, TokenRows]:
        """Return the arrays by name."""
        return {"tokens": self.tokens, "starts": self.starts, "documents": self.documents}


def read_sentences(
    documents: Iterable[str], tokenizer: Tokenizer, longest_tokens: int
) -> Sentences:
    """Tokenize documents and find their sentences.

    The end of a line is also the end of a sentence. The result excludes documents without tokens.

    Args:
        documents: texts of any length.
        tokenizer: tokenizer, used without its post-processor.
        longest_tokens: maximum length of a sentence in tokens. The function cuts a longer sentence
            into parts of this length, which count as sentences.
    """
    stream = iter(documents)
    # an array takes 4 bytes per token instead of a list's 40, for up to 150 million tokens
    tokens, starts, first_sentences = array("i"), array("q"), array("q")
    while batch := list(islice(stream, DOCUMENTS_PER_CALL)):
        encodings = tokenizer.encode_batch(batch, add_special_tokens=False)
        for text, encoding in zip(batch, encodings, strict=True):
            if not encoding.ids:
                continue
            first_sentences.append(len(starts))
            found = _sentence_starts(text, encoding.offsets, longest_tokens)
            starts.extend((found + len(tokens)).tolist())
            tokens.extend(encoding.ids)
    first_sentences.append(len(starts))
    starts.append(len(tokens))
    return Sentences(
        np.frombuffer(tokens, np.int32),
        np.frombuffer(starts, np.int64),
        np.frombuffer(first_sentences, np.int64),
    )


def _sentence_starts(
    text: str, offsets: list[tuple[int, int]], longest_tokens: int
) -> NDArray[np.int64]:
    """Return the index of each sentence's first token in ascending order."""
    # a token can include the space before its word, so a sentence starts with this space
    boundaries = [end.start() for end in _SENTENCE_OR_LINE_END.finditer(text)]
    token_starts = np.array([start for start, _ in offsets], np.int64)
    starts = np.unique([0, *np.searchsorted(token_starts, boundaries).tolist()])
    ends = np.append(starts[starts < len(offsets)], len(offsets))
    parts = [np.arange(a, b, longest_tokens) for a, b in pairwise(ends)]
    return np.concatenate(parts)

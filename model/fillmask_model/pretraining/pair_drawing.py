"""Pairs of segments for next-sentence prediction (Devlin et al. 2019, section 3.1, task 2).

A pair has two segments of consecutive sentences. In half of the pairs the second segment follows
the first segment in its document. In the other half the second segment comes from another document.

Lengths and cuts follow BERT's published preparation of training data, with these differences:
- The label does not depend on the segments, so that half of the pairs are consecutive for documents
  of any length. Under this rule, an epoch leaves out the last sentence of a document if earlier
  pairs contain all other sentences. BERT pairs this sentence with another document.
- A segment from another document is about as long as the segment that it replaces. In BERT such a
  segment ends early at the end of its document, so that the length alone predicts 57 % of the
  labels; here it predicts 51 % (docs/decisions/022).
- Each pair draws its own target length. In BERT all pairs of a document share one target length.
- A pair takes its segments from at least two sentences, even with a short target length.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fillmask_model.pretraining.rows import DOCUMENTS_PER_CALL, TokenRows
from fillmask_model.pretraining.short_texts import SENTENCE_OR_LINE_END

IS_NEXT, NOT_NEXT = 0, 1  # the order of BERT's logits
# maximum number of draws to find a document with enough text, the number of BERT's draws to find
# another document
TRIES = 10
SHORT_SHARE = 0.1  # share of pairs with a random target length (Devlin et al. 2019, section A.2)


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """Token ids of documents with the starts of their sentences.

    Attributes:
        tokens: ids of all documents without special tokens.
        starts: (S + 1,) index of each sentence's first token. The last entry is the number of
            tokens.
        documents: (D + 1,) index of each document's first sentence. The last entry is the number S
            of sentences.
    """

    tokens: TokenRows
    starts: TokenRows
    documents: TokenRows

    def span(self, first: int, last: int) -> tuple[int, int]:
        return int(self.starts[first]), int(self.starts[last])


def longest_sentence(row_tokens: int) -> int:
    """Return half the length of an input, because pairs lose most tokens of longer sentences."""
    return row_tokens // 2


def read_sentences(
    documents: Iterable[str], tokenizer: Tokenizer, longest_tokens: int
) -> Sentences:
    """Tokenize documents and find their sentences, which end at a line end at the latest.

    The tokenizer reads complete documents, so that a sentence has the same tokens as in a packed
    row. The result excludes documents without tokens.

    Args:
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
    # a token can include the space before its word, so a sentence starts with this space
    boundaries = [end.start() for end in SENTENCE_OR_LINE_END.finditer(text)]
    token_starts = np.array([start for start, _ in offsets], np.int64)
    starts = np.unique([0, *np.searchsorted(token_starts, boundaries).tolist()])
    ends = np.append(starts[starts < len(offsets)], len(offsets))
    return np.concatenate([np.arange(a, b, longest_tokens) for a, b in pairwise(ends)])


def draw_pairs(
    sentences: Sentences, longest_tokens: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Draw the pairs of an epoch in random order.

    The first segments and the segments that follow them contain all tokens of the documents, with
    these exceptions: tokens that a cut removes, a last sentence that remains alone, and documents
    with only one sentence.

    Args:
        longest_tokens: maximum length of two segments together, in tokens.
        epoch: epoch to draw, counted from 0. Each epoch has different pairs.

    Returns:
        (N, 6) start and end of the first segment and of the second segment as indices of tokens,
        label (IS_NEXT or NOT_NEXT), and index of the first segment's document.
    """
    generator = np.random.default_rng([seed, epoch])
    documents = sentences.documents.tolist()
    found: list[tuple[int, int, int, int, int, int]] = []
    # without a second document, no segment can come from another document
    for document in range(len(documents) - 1) if len(documents) > 2 else ():
        sentence, last = documents[document], documents[document + 1]
        while last - sentence >= 2:
            target = longest_tokens
            if generator.random() < SHORT_SHARE:
                target = int(generator.integers(2, longest_tokens + 1))
            end = max(_chunk_end(sentences, sentence, last, target), sentence + 2)
            middle = int(generator.integers(sentence + 1, end))
            first, second = sentences.span(sentence, middle), sentences.span(middle, end)
            label = int(generator.random() < 0.5)
            if label == NOT_NEXT:
                second = _random_segment(sentences, document, second[1] - second[0], generator)
                end = middle  # the text after the first segment begins the next pair
            sentence = end
            found.append((*_cut(first, second, longest_tokens, generator), label, document))
    return np.array(found, np.int64).reshape(-1, 6)[generator.permutation(len(found))]


def _chunk_end(sentences: Sentences, start: int, last: int, target_tokens: int) -> int:
    """Return the end of the shortest range of sentences with the target length, at most `last`."""
    starts = sentences.starts
    end = np.searchsorted(starts[start : last + 1], starts[start] + target_tokens)
    return min(start + int(end), last)


def _random_segment(
    sentences: Sentences, document: int, target_tokens: int, generator: np.random.Generator
) -> tuple[int, int]:
    """Return the range of tokens of a segment of about the target length from another document."""
    starts = sentences.starts
    for _ in range(TRIES):
        other = int(generator.integers(len(sentences.documents) - 2))
        other += other >= document
        first, last = sentences.documents[other : other + 2].tolist()
        start = int(generator.integers(first, last))
        if starts[last] - starts[start] >= target_tokens:
            break
    end = _chunk_end(sentences, start, last, target_tokens)
    surplus = starts[end] - starts[start] - target_tokens
    if end - start > 1 and surplus > starts[end] - starts[end - 1] - surplus:
        end -= 1  # the end of the sentence before is nearer to the target length
    return sentences.span(start, end)


def _cut(
    first: tuple[int, int],
    second: tuple[int, int],
    longest_tokens: int,
    generator: np.random.Generator,
) -> tuple[int, int, int, int]:
    """Shorten the longer segment, at its front and back at random, to the maximum length."""

    def shorten(segment: tuple[int, int], removed: int) -> tuple[int, int]:
        from_front = int(generator.binomial(removed, 0.5))
        return segment[0] + from_front, segment[1] - (removed - from_front)

    a, b = (end - start for start, end in (first, second))
    if a + b > longest_tokens:
        kept = min(a, max(longest_tokens - b, (longest_tokens + 1) // 2))
        first = shorten(first, a - kept)
        second = shorten(second, b - (longest_tokens - kept))
    return (*first, *second)

"""Pairs of segments for next-sentence prediction (Devlin et al. 2019, section 3.1, task 2).

A pair has two segments of consecutive sentences. In half of the pairs the second segment follows
the first segment in its document. In the other half the second segment comes from another document.

Lengths and cuts follow BERT's published preparation of training data, with these differences:
- The label does not depend on the segments, so that half of the pairs are consecutive for documents
  of any length. Under this rule, an epoch leaves out the last sentence of a document if earlier
  pairs contain all other sentences. BERT pairs this sentence with another document.
- A segment from another document is about as long as the segment that it replaces. In BERT such a
  segment ends early at the end of its document. The length alone then predicts 57 % of the labels
  of pairs of 128 tokens, on a sample of the built-in model's training text. With the lengths of
  this module, the length alone predicts 51 %.
- Each pair draws its own target length. In BERT all pairs of a document share one target length.
- A pair takes its segments from at least two sentences, even with a short target length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fillmask_model.pretraining.sentences import Sentences

IS_NEXT, NOT_NEXT = 0, 1  # the order of BERT's logits
# maximum number of draws to find a document with enough text, the number of BERT's draws to find
# another document
TRIES = 10
SHORT_SHARE = 0.1  # share of pairs with a random target length (Devlin et al. 2019, section A.2)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of an epoch in random order, as ranges of tokens.

    Attributes:
        first, second: (N, 2) int64, start and end of each segment as indices of tokens.
        labels: (N,) int64, IS_NEXT or NOT_NEXT.
        documents: (N,) int64, index of the first segment's document.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    labels: NDArray[np.int64]
    documents: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


def longest_sentence(row_tokens: int) -> int:
    """Return the maximum length of a sentence in tokens, which is half the length of an input.

    Without this limit, pairs lose most tokens of a sentence that is longer than an input.
    """
    return row_tokens // 2


def draw_pairs(sentences: Sentences, longest_tokens: int, seed: int, epoch: int) -> Pairs:
    """Draw the pairs of an epoch in random order.

    The first segments and the segments that follow them contain all tokens of the documents, with
    these exceptions: tokens that a cut removes, a last sentence that remains alone, and documents
    with only one sentence.

    Args:
        longest_tokens: maximum length of two segments together, in tokens.
        seed: seed of all epochs.
        epoch: epoch to draw, counted from 0. Each epoch has different pairs.
    """
    generator = np.random.default_rng([seed, epoch])
    documents = sentences.documents.tolist()
    found: list[tuple[int, int, int, int, int, int]] = []
    # without a second document, no segment can come from another document
    for document in range(len(documents) - 1) if len(documents) > 2 else ():
        sentence, last = documents[document], documents[document + 1]
        while last - sentence >= 2:
            target = _target(generator, longest_tokens)
            end = max(_chunk_end(sentences, sentence, last, target), sentence + 2)
            middle = int(generator.integers(sentence + 1, end))
            first = _tokens(sentences, sentence, middle)
            label = int(generator.random() < 0.5)
            if label == IS_NEXT:
                second, sentence = _tokens(sentences, middle, end), end
            else:
                start, stop = _tokens(sentences, middle, end)
                second = _random_segment(sentences, document, stop - start, generator)
                sentence = middle  # the text after the first segment begins the next pair
            found.append((*_cut(first, second, longest_tokens, generator), label, document))
    table = np.array(found, np.int64).reshape(-1, 6)[generator.permutation(len(found))]
    return Pairs(table[:, :2], table[:, 2:4], table[:, 4], table[:, 5])


def _target(generator: np.random.Generator, longest_tokens: int) -> int:
    if generator.random() < SHORT_SHARE:
        return int(generator.integers(2, longest_tokens + 1))
    return longest_tokens


def _chunk_end(sentences: Sentences, start: int, last: int, target_tokens: int) -> int:
    """Return the end of the shortest range of sentences with the target length.

    The range ends at `last` if the document has fewer tokens.
    """
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
    return _tokens(sentences, start, end)


def _tokens(sentences: Sentences, start: int, end: int) -> tuple[int, int]:
    """Return the range of tokens of a range of sentences."""
    return int(sentences.starts[start]), int(sentences.starts[end])


def _cut(
    first: tuple[int, int],
    second: tuple[int, int],
    longest_tokens: int,
    generator: np.random.Generator,
) -> tuple[int, int, int, int]:
    """Shorten the longer segment until both segments together have the maximum length.

    Each removed token comes from the front or from the back of its segment at random.
    """
    a, b = (end - start for start, end in (first, second))
    if a + b > longest_tokens:
        half = (longest_tokens + 1) // 2
        kept = min(a, max(longest_tokens - b, half))
        first = _shorten(first, a - kept, generator)
        second = _shorten(second, b - (longest_tokens - kept), generator)
    return (*first, *second)


def _shorten(
    segment: tuple[int, int], removed: int, generator: np.random.Generator
) -> tuple[int, int]:
    from_front = int(generator.binomial(removed, 0.5))
    return segment[0] + from_front, segment[1] - (removed - from_front)

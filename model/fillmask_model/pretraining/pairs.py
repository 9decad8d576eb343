"""Pairs of segments for next-sentence prediction (Devlin et al. 2019, section 3.1, task 2).

A pair has two segments of consecutive sentences. In half of the pairs the second segment follows
the first segment in its document. In the other half the second segment comes from another document.

Lengths and cuts follow BERT's published preparation of training data, with these differences:
- The label does not depend on the segments, so that half of the pairs are consecutive for documents
  of any length. The last sentence of a document is left out if earlier pairs contain all others.
- A segment from another document is about as long as the segment that it replaces. In BERT such a
  segment ends early at the end of its document, so that the length alone predicts 57 % of the
  labels; here it predicts 51 % (docs/decisions/022).
- Each pair draws its own target length. In BERT all pairs of a document share one target length.
- A pair takes its segments from at least two sentences, even with a short target length.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from fillmask_model.pretraining.rows import TokenRows, tokenized
from fillmask_model.pretraining.short_texts import SENTENCE_OR_LINE_END
from fillmask_model.tokenizers.special_tokens import SpecialTokens

IS_NEXT, NOT_NEXT = 0, 1  # the order of BERT's logits
# maximum number of draws to find a document with enough text, the number of BERT's draws to find
# another document
TRIES = 10
SHORT_SHARE = 0.1  # share of pairs with a random target length (Devlin et al. 2019, section A.2)

# index of the first token of each sentence of a document, and of the end of the last one
Bounds: TypeAlias = NDArray[np.int64]
Segment: TypeAlias = tuple[int, int]  # range of tokens


class PairBatch(NamedTuple):
    """Inputs of N pairs, int64, which are padded to T tokens.

    Attributes:
        input_ids, token_types: (N, T). Padding has type 0.
        attention_mask: (N, T), 1 for tokens and 0 for padding.
        labels: (N,) IS_NEXT or NOT_NEXT.
    """

    input_ids: Tensor
    attention_mask: Tensor
    token_types: Tensor
    labels: Tensor

    def rows(self, part: slice) -> PairBatch:
        """Return a range of the pairs with unchanged padding."""
        return PairBatch(*(tensor[part] for tensor in self))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Inputs of N pairs.

    Attributes:
        ids: (N, T) token ids, special tokens and padding included.
        numbers: (N, 3) index of the first token of type 1, number of tokens, and label.
    """

    ids: TokenRows
    numbers: TokenRows

    def batch(self, chosen: slice | NDArray[np.int64]) -> PairBatch:
        """Return the inputs of some pairs, as wide as the longest."""
        numbers = torch.from_numpy(self.numbers[chosen].astype(np.int64))
        second_N1, end_N1 = numbers[:, :1], numbers[:, 1:2]
        place_T = torch.arange(int(end_N1.max()))
        real_NT = place_T < end_N1
        ids = torch.from_numpy(self.ids[chosen, : len(place_T)].astype(np.int64))
        return PairBatch(
            ids, real_NT.long(), (real_NT & (place_T >= second_N1)).long(), numbers[:, 2]
        )


class PairTemplate(NamedTuple):
    """Special tokens around the segments of a tokenizer's input for a pair, as in the service.

    BERT's input is `[CLS] A [SEP] B [SEP]`, with token type 1 from the first token of B on (Devlin
    et al. 2019, section 3). Other tokenizers have other separators or only type 0.
    """

    before: list[int]
    between: list[int]
    after: list[int]
    token_types: int

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> PairTemplate:
        """Derive the template from the tokenizer's input for the texts "a" and "a".

        Raises:
            ValueError: the tokenizer adds no special token before or between the segments, or
                returns no tokens for the text "a".
        """
        encoding = tokenizer.encode("a", "a")
        parts = "".join("-" if part is None else str(part) for part in encoding.sequence_ids)
        if not {"0", "1"} <= set(parts):
            raise ValueError(
                "the tokenizer must return tokens for the text 'a'; use another tokenizer"
            )
        first, second = parts.index("0"), parts.index("1")
        before, after = encoding.ids[:first], encoding.ids[parts.rindex("1") + 1 :]
        between = encoding.ids[parts.rindex("0") + 1 : second]
        if not (before and between):
            raise ValueError(
                "the tokenizer must have a template for pairs with a special token before the "
                "first text and between the texts; use another tokenizer"
            )
        return cls(before, between, after, 1 + max(encoding.type_ids))


def make_pairs(documents: Iterable[str], tokenizer: Tokenizer, row_tokens: int, seed: int) -> Pairs:
    """Return the pairs of documents in random order.

    Args:
        row_tokens: maximum length of an input in tokens, special tokens included.

    Raises:
        ValueError: the text has fewer than two documents, or no document with two sentences.
    """
    template = PairTemplate.from_tokenizer(tokenizer)
    # half of an input, because pairs lose most tokens of longer sentences
    tokens, sentences = read_sentences(documents, tokenizer, row_tokens // 2)
    longest = row_tokens - sum(map(len, template[:3]))
    drawn = draw_pairs(sentences, longest, seed)
    if not len(drawn):
        raise ValueError(
            "the text must have at least two documents, one of them with two or more "
            f"sentences (got documents: {len(sentences)}); add documents of several sentences"
        )
    pad = SpecialTokens.from_tokenizer(tokenizer).pad
    ids = np.full((len(drawn), row_tokens), pad, np.int32)
    numbers = np.empty((len(drawn), 3), np.int64)
    for row, (a, b, c, d, label) in enumerate(drawn.tolist()):
        head = [*template.before, *tokens[a:b], *template.between]
        whole = [*head, *tokens[c:d], *template.after]
        ids[row, : len(whole)] = whole
        second = len(head) if template.token_types > 1 else row_tokens
        numbers[row] = second, len(whole), label
    return Pairs(ids, numbers)


def read_sentences(
    documents: Iterable[str], tokenizer: Tokenizer, longest_tokens: int
) -> tuple[NDArray[np.int32], list[Bounds]]:
    """Tokenize the sentences of documents, which end at a line end at the latest.

    The result excludes documents without tokens.

    Args:
        longest_tokens: maximum length of a sentence in tokens. The function cuts a longer sentence
            into parts of this length, which count as sentences.

    Returns:
        The ids of all documents without special tokens, and the sentences of each document.
    """
    # an array takes 4 bytes per token instead of a list's 40, for up to 150 million tokens
    tokens, sentences = array("i"), list[Bounds]()
    for document in documents:
        bounds = [len(tokens)]
        texts = SENTENCE_OR_LINE_END.split(document)
        for ids in tokenized(texts, tokenizer):
            for start in range(0, len(ids), longest_tokens):
                tokens.extend(ids[start : start + longest_tokens])
                bounds.append(len(tokens))
        if len(bounds) > 1:
            sentences.append(np.array(bounds))
    return np.frombuffer(tokens, np.int32), sentences


def draw_pairs(sentences: list[Bounds], longest_tokens: int, seed: int) -> NDArray[np.int64]:
    """Draw pairs whose first segments, and those that follow them, have nearly all tokens.

    Args:
        sentences: sentences of each document.
        longest_tokens: maximum length of two segments together, in tokens.

    Returns:
        (N, 5) start and end of the first segment and of the second segment as indices of tokens,
        and label (IS_NEXT or NOT_NEXT), in random order.
    """
    generator = np.random.default_rng(seed)
    found: list[tuple[int, ...]] = []
    # without a second document, no segment can come from another document
    for document, bounds in enumerate(sentences if len(sentences) > 1 else []):
        sentence = 0
        while len(bounds) - 1 - sentence >= 2:
            target = longest_tokens
            if generator.random() < SHORT_SHARE:
                target = int(generator.integers(2, longest_tokens + 1))
            end = max(_chunk_end(bounds, sentence, target), sentence + 2)
            middle = int(generator.integers(sentence + 1, end))
            first, second = _span(bounds, sentence, middle), _span(bounds, middle, end)
            label = int(generator.random() < 0.5)
            if label == NOT_NEXT:
                second = _random_segment(sentences, document, second[1] - second[0], generator)
                end = middle  # the text after the first segment begins the next pair
            sentence = end
            found.append((*_cut(first, second, longest_tokens, generator), label))
    return np.array(found, np.int64).reshape(-1, 5)[generator.permutation(len(found))]


def _span(bounds: Bounds, first: int, last: int) -> Segment:
    return int(bounds[first]), int(bounds[last])


def _chunk_end(bounds: Bounds, start: int, target_tokens: int) -> int:
    """Return the end of the shortest range of sentences with the target length, or the last."""
    return min(bisect_left(bounds, bounds[start] + target_tokens, start), len(bounds) - 1)


def _random_segment(
    sentences: list[Bounds], document: int, target_tokens: int, generator: np.random.Generator
) -> Segment:
    """Return a segment of about the target length from another document."""
    for _ in range(TRIES):
        other = int(generator.integers(len(sentences) - 1))
        bounds = sentences[other + (other >= document)]
        start = int(generator.integers(len(bounds) - 1))
        if bounds[-1] - bounds[start] >= target_tokens:
            break
    end = _chunk_end(bounds, start, target_tokens)
    surplus = bounds[end] - bounds[start] - target_tokens
    if end - start > 1 and surplus > bounds[end] - bounds[end - 1] - surplus:
        end -= 1  # the end of the sentence before is nearer to the target length
    return _span(bounds, start, end)


def _cut(
    first: Segment, second: Segment, longest_tokens: int, generator: np.random.Generator
) -> tuple[int, int, int, int]:
    """Shorten the longer segment, at its front and back at random, to the maximum length."""

    def shorten(segment: Segment, removed: int) -> Segment:
        from_front = int(generator.binomial(removed, 0.5))
        return segment[0] + from_front, segment[1] - (removed - from_front)

    a, b = (end - start for start, end in (first, second))
    if a + b > longest_tokens:
        kept = min(a, max(longest_tokens - b, (longest_tokens + 1) // 2))
        first = shorten(first, a - kept)
        second = shorten(second, b - (longest_tokens - kept))
    return (*first, *second)

"""Pairs of segments for next-sentence prediction (Devlin et al. 2019, section 3.1, task 2).

A pair has two segments of consecutive sentences. In half of the pairs the second segment follows
the first segment in its document. In the other half the second segment comes from another document.
The tokenizer makes the input of a pair, as in the service.

Lengths follow BERT's published preparation of training data, with these differences:
- The label does not depend on the segments, so that half of the pairs are consecutive for documents
  of any length. The last sentence of a document is left out if earlier pairs contain all others.
- A segment from another document is about as long as the segment that it replaces. In BERT such a
  segment ends early at the end of its document, so that the length alone predicts 57 % of the
  labels; here it predicts 51 % (docs/decisions/022).
- Each pair draws its own target length. In BERT all pairs of a document share one target length.
- A pair takes its segments from at least two sentences, even with a short target length.
- The longer segment of a pair that is too long loses its end. In BERT it loses both ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from fillmask_model.pretraining.rows import TokenRows, encodings
from fillmask_model.pretraining.short_texts import SENTENCE_OR_LINE_END
from fillmask_model.tokenizers.special_tokens import SpecialTokens, separates_pairs

IS_NEXT, NOT_NEXT = 0, 1  # the order of BERT's logits
# maximum number of draws to find a document with enough text, the number of BERT's draws to find
# another document
TRIES = 10
SHORT_SHARE = 0.1  # share of pairs with a random target length (Devlin et al. 2019, section A.2)


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


class Document(NamedTuple):
    """Sentences of a document.

    Attributes:
        bounds: number of tokens before each sentence, and of all sentences.
    """

    sentences: list[str]
    bounds: list[int]

    def tokens(self, start: int, end: int) -> int:
        return self.bounds[end] - self.bounds[start]

    def chunk_end(self, start: int, target_tokens: int) -> int:
        """Return the end of the shortest range of sentences with the target length, or the last."""
        end = bisect_left(self.bounds, self.bounds[start] + target_tokens, start)
        return min(end, len(self.sentences))


def pair_types(tokenizer: Tokenizer) -> int:
    """Return the number of token types in the tokenizer's input for a pair.

    Raises:
        ValueError: the tokenizer adds no special token before or between the texts of a pair.
    """
    encoding = tokenizer.encode("a", "a")
    if not (separates_pairs(tokenizer) and encoding.special_tokens_mask[0]):
        raise ValueError(
            "the tokenizer must have a template for pairs with a special token before the "
            "first text and between the texts; use another tokenizer"
        )
    return 1 + max(encoding.type_ids)


def make_pairs(documents: Iterable[str], tokenizer: Tokenizer, row_tokens: int, seed: int) -> Pairs:
    """Return the pairs of documents in random order.

    Args:
        row_tokens: maximum length of an input in tokens, special tokens included.

    Raises:
        ValueError: the text has fewer than two documents, or no document with two sentences.
    """
    # half of an input, because pairs lose most tokens of longer sentences
    read = read_sentences(documents, tokenizer, row_tokens // 2)
    drawn = draw_pairs(read, row_tokens - tokenizer.num_special_tokens_to_add(is_pair=True), seed)
    if not drawn:
        raise ValueError(
            "the text must have at least two documents, one of them with two or more "
            f"sentences (got documents: {len(read)}); add documents of several sentences"
        )
    pad = SpecialTokens.from_tokenizer(tokenizer).pad
    padding = Tokenizer.from_str(tokenizer.to_str())
    padding.enable_truncation(row_tokens)
    padding.enable_padding(length=row_tokens, pad_id=pad)
    ids = np.empty((len(drawn), row_tokens), np.int32)
    numbers = np.empty((len(drawn), 3), np.int64)
    segments = ((first, second) for first, second, _ in drawn)
    inputs = encodings(segments, padding.encode_batch_fast)
    for row, (encoding, (_, _, label)) in enumerate(zip(inputs, drawn, strict=True)):
        types = encoding.type_ids
        ids[row] = encoding.ids
        numbers[row] = (
            types.index(1) if 1 in types else row_tokens,
            sum(encoding.attention_mask),
            label,
        )
    return Pairs(ids, numbers)


def read_sentences(
    documents: Iterable[str], tokenizer: Tokenizer, longest_tokens: int
) -> list[Document]:
    """Split documents into sentences, which end at a line end at the latest.

    The result excludes documents without tokens.

    Args:
        longest_tokens: maximum length of a sentence in tokens. The function cuts a longer sentence
            into parts of this length, which count as sentences.
    """
    encode = partial(tokenizer.encode_batch, add_special_tokens=False)
    found = []
    for document in documents:
        sentences, bounds = list[str](), [0]
        texts = SENTENCE_OR_LINE_END.split(document)
        for text, encoding in zip(texts, encodings(texts, encode), strict=True):
            for start in range(0, len(encoding), longest_tokens):
                places = encoding.offsets[start : start + longest_tokens]
                sentences.append(text[places[0][0] : places[-1][1]])
                bounds.append(bounds[-1] + len(places))
        if sentences:
            found.append(Document(sentences, bounds))
    return found


def draw_pairs(
    documents: list[Document], longest_tokens: int, seed: int
) -> list[tuple[str, str, int]]:
    """Draw pairs whose first segments, and those that follow them, have nearly all sentences.

    Args:
        longest_tokens: length of two segments together, in tokens, that a pair reaches if it can.

    Returns:
        First segments, second segments and labels (IS_NEXT or NOT_NEXT), in random order.
    """
    generator = np.random.default_rng(seed)
    found: list[tuple[str, str, int]] = []
    # without a second document, no segment can come from another document
    for number, document in enumerate(documents if len(documents) > 1 else []):
        start = 0
        while len(document.sentences) - start >= 2:
            target = longest_tokens
            if generator.random() < SHORT_SHARE:
                target = int(generator.integers(2, longest_tokens + 1))
            end = max(document.chunk_end(start, target), start + 2)
            middle = int(generator.integers(start + 1, end))
            first, second = document.sentences[start:middle], document.sentences[middle:end]
            label = int(generator.random() < 0.5)
            if label == NOT_NEXT:
                second = _random_segment(documents, number, document.tokens(middle, end), generator)
                end = middle  # the text after the first segment begins the next pair
            start = end
            found.append((" ".join(first), " ".join(second), label))
    return [found[index] for index in generator.permutation(len(found))]


def _random_segment(
    documents: list[Document], number: int, target_tokens: int, generator: np.random.Generator
) -> list[str]:
    """Return sentences of about the target length from another document."""
    for _ in range(TRIES):
        other = int(generator.integers(len(documents) - 1))
        document = documents[other + (other >= number)]
        start = int(generator.integers(len(document.sentences)))
        if document.tokens(start, -1) >= target_tokens:
            break
    end = document.chunk_end(start, target_tokens)
    surplus = document.tokens(start, end) - target_tokens
    if end - start > 1 and surplus > document.tokens(end - 1, end) - surplus:
        end -= 1  # the end of the sentence before is nearer to the target length
    return document.sentences[start:end]

"""Token ids of single texts and pairs, with batches of texts of similar length.

The post-processor of the tokenizer adds the special tokens, as in `[CLS] A [SEP]` and
`[CLS] A [SEP] B [SEP]`.

Shapes: N batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from torch import Tensor

from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.tokenizers.special_tokens import SpecialTokens, separates_pairs

# a multiple limits the number of shapes, because oneDNN compiles kernels per shape
LENGTH_MULTIPLE = 8
# an epoch sorts the rows of this many batches by length
_BATCHES_PER_SORT = 50


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedTexts:
    """Token ids of texts."""

    ids: list[NDArray[np.int32]]
    types: list[NDArray[np.int32]] | None  # None for an encoder with at most one token type
    pad: int
    max_tokens: int  # of a padded text
    # start and end (T, 2) of each token in characters, -1 for special tokens, if asked for
    spans: list[NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(ids) for ids in self.ids])


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs (N, T) of an encoder for some rows, with padding at the end."""

    rows: NDArray[np.int64]
    input_ids: Tensor
    attention_mask: Tensor | None  # None without padding
    token_type_ids: Tensor | None

    def inputs(self, device: torch.device) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the tensors on a device, as the arguments of `TiedEncoder.classify`."""
        mask, types = self.attention_mask, self.token_type_ids
        return (
            self.input_ids.to(device),
            None if mask is None else mask.to(device),
            None if types is None else types.to(device),
        )


def tokenize(
    dataset: Dataset,
    tokenizer: Tokenizer,
    *,
    max_tokens: int,
    type_vocab_size: int,
    truncate: bool,
    note: Callable[[str], None],
    with_spans: bool = False,
) -> TokenizedTexts:
    """Tokenize the texts of a dataset as the service does, and refuse those that it refuses.

    Args:
        max_tokens: maximum number of tokens of a text or pair, special tokens included.
        truncate: whether longer texts lose tokens from their end, and pairs from their longer text.
        note: function that tells the user how many texts lost tokens, if any.
        with_spans: whether to find the characters of each token, of single texts.
    """
    special = SpecialTokens.from_tokenizer(tokenizer)
    if dataset.has_pairs and not separates_pairs(tokenizer):
        raise ValueError(
            f"the post-processor of the tokenizer must separate the pairs of {dataset.path} by a "
            "special token; use another tokenizer, or remove the second text"
        )
    inputs = [e.texts if e.text_pair is not None else e.text for e in dataset.examples]
    encodings = tokenizer.encode_batch(inputs)
    _check_encodings(dataset, encodings, special, tokenizer)
    long = [row for row, encoding in enumerate(encodings) if len(encoding) > max_tokens]
    if long:
        counts = f"{len(long):,} of {len(encodings):,}"
        if not truncate:
            raise ValueError(
                f"{dataset.path}, row {dataset.examples[long[0]].row} must have at most "
                f"{max_tokens} tokens (got {len(encodings[long[0]])}; too many tokens in {counts} "
                "rows); shorten the texts or set --on-long-text truncate"
            )
        tokenizer.enable_truncation(max_tokens, strategy="longest_first")
        for row, cut in zip(long, tokenizer.encode_batch([inputs[r] for r in long]), strict=True):
            encodings[row] = cut
        tokenizer.no_truncation()
        note(f"rows of {dataset.path} truncated to {max_tokens} tokens: {counts}")
    ids = [np.array(encoding.ids, np.int32) for encoding in encodings]
    types = None
    if type_vocab_size > 1:
        types = [np.array(encoding.type_ids, np.int32) for encoding in encodings]
    spans = None
    if with_spans:
        special_T1 = [np.array(encoding.special_tokens_mask)[:, None] for encoding in encodings]
        spans = [np.where(s, -1, e.offsets) for s, e in zip(special_T1, encodings, strict=True)]
    return TokenizedTexts(ids, types, special.pad, max_tokens, spans)


def shuffled_batches(
    texts: TokenizedTexts, batch_rows: int, seed: int, epoch: int
) -> Iterator[Batch]:
    """Yield an epoch's new batches of texts of similar length, in a seeded random order."""
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(texts))
    lengths = texts.lengths()
    step = batch_rows * _BATCHES_PER_SORT
    batches = []
    for start in range(0, len(order), step):
        part = order[start : start + step]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches += [part[i : i + batch_rows] for i in range(0, len(part), batch_rows)]
    for index in generator.permutation(len(batches)):
        yield make_batch(texts, batches[index])


def sorted_batches(texts: TokenizedTexts, batch_rows: int) -> Iterator[Batch]:
    """Yield batches of all texts in ascending order of length."""
    order = np.argsort(texts.lengths(), kind="stable")
    for start in range(0, len(order), batch_rows):
        yield make_batch(texts, order[start : start + batch_rows])


def make_batch(texts: TokenizedTexts, rows: NDArray[np.int64]) -> Batch:
    """Pad some texts to the same length, a multiple of 8 or max_tokens if this is less.

    Texts of equal length keep their length.
    """
    lengths = [len(texts.ids[row]) for row in rows]
    width = max(lengths)
    if min(lengths) < width:
        width = min(-(-width // LENGTH_MULTIPLE) * LENGTH_MULTIPLE, texts.max_tokens)
    input_ids = np.full((len(rows), width), texts.pad, np.int64)
    attention_mask, types = np.zeros_like(input_ids), np.zeros_like(input_ids)
    for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        input_ids[place, :length] = texts.ids[row]
        attention_mask[place, :length] = 1
        if texts.types is not None:
            types[place, :length] = texts.types[row]
    return Batch(
        rows=rows,
        input_ids=torch.from_numpy(input_ids),
        attention_mask=None if attention_mask.all() else torch.from_numpy(attention_mask),
        token_type_ids=None if texts.types is None else torch.from_numpy(types),
    )


def _check_encodings(
    dataset: Dataset, encodings: list[Encoding], special: SpecialTokens, tokenizer: Tokenizer
) -> None:
    unknown = getattr(tokenizer.model, "unk_token", None)
    allowed = {special.mask, tokenizer.token_to_id(unknown) if unknown else None}
    forbidden = np.array([token for token in special.all if token not in allowed])
    for example, encoding in zip(dataset.examples, encodings, strict=True):
        ids = np.array(encoding.ids)[np.array(encoding.special_tokens_mask) == 0]
        if not len(ids):
            raise ValueError(
                f"{dataset.path}, row {example.row} has no tokens; write at least one word"
            )
        if len(found := ids[np.isin(ids, forbidden)]):
            token = tokenizer.id_to_token(int(found[0]))
            raise ValueError(
                f"{dataset.path}, row {example.row}: {token} is a special token of the model; "
                "remove it from the text"
            )

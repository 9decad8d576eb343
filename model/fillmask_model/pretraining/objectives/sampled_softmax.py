"""Cross-entropy over a sample of the vocabulary.

The projection to the whole vocabulary takes a quarter of the multiplications of a training step of
the built-in model. A sample contains the most frequent tokens, all labels of a batch and random
other tokens. The random tokens stand for all tokens outside the sample: in expectation, the sum of
the weighted exponentials is the sum over the whole vocabulary. The method is importance sampling as
in Jean et al. 2015, "On Using Very Large Target Vocabulary", section 3, but with a uniform
distribution and weights.

Shapes: M predicted positions, E width of the table, V vocabulary, C tokens of the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fillmask_model.pretraining.objectives.cross_entropy import summed_cross_entropy
from fillmask_model.pretraining.rows import TokenRows

COUNTED_ROWS = 8192  # 2 million tokens in rows of 256 tokens, enough for the 4,096 most frequent


@dataclass(frozen=True, slots=True, eq=False)
class VocabularySample:
    """Sample of the vocabulary.

    Attributes:
        ids: (C,) int64, token ids in ascending order.
        offsets: (C,) float32, logarithm of the number of tokens for which each token stands.
    """

    ids: Tensor
    offsets: Tensor

    def cross_entropy(
        self, hidden_ME: Tensor, table_VE: Tensor, bias_V: Tensor | None, labels_M: Tensor
    ) -> Tensor:
        """Return the cross-entropy in nats, summed over positions.

        Args:
            hidden_ME: outputs of the head.
            table_VE: output projection.
            bias_V: bias of the logits. None without a bias.
            labels_M: ids of the true tokens, all of which are in the sample.
        """
        ids_C = self.ids.to(hidden_ME.device)
        bias_C = self.offsets.to(table_VE)
        if bias_V is not None:
            bias_C = bias_C + bias_V.index_select(0, ids_C)
        columns_M = torch.searchsorted(ids_C, labels_M)
        return summed_cross_entropy(hidden_ME, table_VE.index_select(0, ids_C), bias_C, columns_M)


@dataclass(frozen=True, slots=True, eq=False)
class VocabularySampler:
    """Samples of the vocabulary for the labels of batches.

    Attributes:
        frequent_ids: (frequent_tokens,) int64, ids in every sample.
        vocab_size: exclusive upper bound of the ids.
        sampled_tokens: number of random ids in a sample.
    """

    frequent_ids: Tensor
    vocab_size: int
    sampled_tokens: int

    @classmethod
    def from_rows(
        cls, rows: TokenRows, vocab_size: int, frequent_tokens: int, sampled_tokens: int
    ) -> VocabularySampler:
        """Count the tokens of some training rows to find the most frequent ids.

        Args:
            rows: (rows, T) token ids.
            frequent_tokens: number of most frequent ids in every sample.
        """
        counted = rows[:: max(1, len(rows) // COUNTED_ROWS)]
        counts = np.bincount(counted.ravel(), minlength=vocab_size)
        # stable, so that equal counts give the same order on every machine
        frequent = np.argsort(-counts, kind="stable")[:frequent_tokens]
        return cls(torch.from_numpy(frequent), vocab_size, sampled_tokens)

    def __call__(self, labels_M: Tensor, generator: torch.Generator) -> VocabularySample:
        """Draw a sample.

        Args:
            labels_M: ids of the true tokens of a batch, on the CPU.
            generator: only source of randomness, on the CPU.
        """
        in_sample = torch.zeros(self.vocab_size, dtype=torch.bool)
        in_sample[self.frequent_ids] = True
        in_sample[labels_M] = True
        rest = (~in_sample).nonzero().squeeze(1)
        drawn = rest[torch.randperm(len(rest), generator=generator)[: self.sampled_tokens]]
        offsets_V = torch.zeros(self.vocab_size)
        offsets_V[drawn] = math.log(max(1, len(rest)) / max(1, len(drawn)))
        in_sample[drawn] = True
        ids_C = in_sample.nonzero().squeeze(1)
        return VocabularySample(ids_C, offsets_V[ids_C])

"""Input embeddings of words, positions and token types.

Shapes: N batch, T tokens, D d_model, E width of the table.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.layers import norm
from fillmask_model.encoder.positions import sinusoidal_positions

# ESM's training masked 80 % of the selected 15 % of tokens (Rives et al. 2021)
UNMASKED_IN_TRAINING = 1 - 0.15 * 0.8


class Embeddings(nn.Module):
    """Sum of word, position and token type embeddings, with optional layer norm and projection."""

    sinusoids: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.table_width
        self.word = nn.Embedding(config.vocab_size, width)
        if config.positions == "learned":
            self.position = nn.Embedding(config.max_positions, width)
        if config.type_vocab_size:
            self.token_type = nn.Embedding(config.type_vocab_size, width)
        self.norm = norm(config, width) if config.embedding_norm else nn.Identity()
        if config.embedding_size:
            self.projection = nn.Linear(width, config.d_model)
        self.config = config
        self.compute_sinusoids()

    def compute_sinusoids(self) -> None:
        """Compute the position table of an encoder with fixed positions.

        Checkpoints do not store this table.
        """
        if self.config.positions == "fixed":
            table = sinusoidal_positions(self.config.max_positions, self.config.table_width)
            self.register_buffer("sinusoids", table, persistent=False)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None
    ) -> Tensor:
        """Embed ids (N, T) as (N, T, D).

        The arguments have the same form as in `TiedEncoder.forward`.
        """
        x_NTE = self.word(input_ids)
        if self.config.token_dropout_id is not None:
            masked_NT = input_ids.eq(self.config.token_dropout_id)
            x_NTE = x_NTE * _token_dropout_scales(masked_NT, attention_mask)
        table = self.position_table()
        if table is not None:
            x_NTE = x_NTE + table[: input_ids.shape[1]]
        if self.config.type_vocab_size:
            types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
            x_NTE = x_NTE + self.token_type(types)
        x_NTE = self.norm(x_NTE)
        x_NTD: Tensor = self.projection(x_NTE) if self.config.embedding_size else x_NTE
        return x_NTD

    def position_table(self) -> Tensor | None:
        """Return the position embeddings (max_positions, E).

        The result is None for an encoder without position embeddings.
        """
        if self.config.positions == "none":
            return None
        return self.position.weight if self.config.positions == "learned" else self.sinusoids


def _token_dropout_scales(masked_NT: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Return the scales (N, T, 1) of token dropout.

    Masks have scale 0. The scales of the other tokens compensate for the masks.
    """
    real_NT = torch.ones_like(masked_NT) if attention_mask is None else attention_mask != 0
    unmasked_N1 = 1 - masked_NT.sum(-1, keepdim=True) / real_NT.sum(-1, keepdim=True)
    # a text of only masks has no other tokens to scale
    scales_N1 = torch.where(unmasked_N1 > 0, UNMASKED_IN_TRAINING / unmasked_N1, 0)
    return torch.where(masked_NT, 0, scales_N1)[..., None]

"""What tokens are before the first block: words, positions and types.

Shapes: N batch, T tokens, D d_model, E width of the table.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from model.encoder.config import EncoderConfig
from model.encoder.layers import layer_norm
from model.encoder.positions import fixed_positions

# the share of words that ESM's encoders see while they are trained (Rives et al. 2021)
SEEN_IN_TRAINING = 1 - 0.15 * 0.8


class Embeddings(nn.Module):
    """Word + position + token type, normalised and widened where the config says so."""

    sinusoids: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.table_width
        self.word = nn.Embedding(config.vocab_size, width)
        if config.positions == "learned":
            self.position = nn.Embedding(config.max_positions, width)
        if config.type_vocab_size:
            self.token_type = nn.Embedding(config.type_vocab_size, width)
        self.norm = layer_norm(config, width) if config.embedding_norm else nn.Identity()
        if config.embedding_size:
            self.projection = nn.Linear(width, config.d_model)
        self.config = config
        self.make_sinusoids()

    def make_sinusoids(self) -> None:
        """Compute the fixed positions, where the encoder has them: they are no weights."""
        if self.config.positions == "fixed":
            table = fixed_positions(self.config.max_positions, self.config.table_width)
            self.register_buffer("sinusoids", table, persistent=False)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None
    ) -> Tensor:
        """(N, T) ids to (N, T, D); arguments as for `TiedEncoder.forward`."""
        x_NTE = self.word(input_ids)
        if self.config.token_dropout_id is not None:
            masked_NT = input_ids.eq(self.config.token_dropout_id)
            x_NTE = x_NTE * _token_scales(masked_NT, attention_mask)
        table = self.position_table()
        if table is not None:
            x_NTE = x_NTE + table[: input_ids.shape[1]]
        if self.config.type_vocab_size:
            types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
            x_NTE = x_NTE + self.token_type(types)
        x_NTE = self.norm(x_NTE)
        widened: Tensor = self.projection(x_NTE) if self.config.embedding_size else x_NTE
        return widened

    def position_table(self) -> Tensor | None:
        """(max_positions, E), or None where embeddings hold no positions."""
        if self.config.positions == "none":
            return None
        return self.position.weight if self.config.positions == "learned" else self.sinusoids


def _token_scales(masked_NT: Tensor, attention_mask: Tensor | None) -> Tensor:
    """(N, T, 1): 0 for masks, and for the others what makes up for the masks of their text."""
    real_NT = torch.ones_like(masked_NT) if attention_mask is None else attention_mask != 0
    seen_N1 = 1 - masked_NT.sum(-1, keepdim=True) / real_NT.sum(-1, keepdim=True)
    # a text of masks alone has no other words to scale
    scales_N1 = torch.where(seen_N1 > 0, SEEN_IN_TRAINING / seen_N1, 0)
    return torch.where(masked_NT, 0, scales_N1)[..., None]

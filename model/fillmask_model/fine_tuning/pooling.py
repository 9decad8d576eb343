"""Maximum of a text's logits over its tokens, with a gradient for the largest logits only.

Each word of the vocabulary gets its gradient from one token. autograd instead keeps the logits of
all tokens and multiplies the whole matrix in the backward pass, which takes twice the memory and
three times the time.

Shapes: N texts, T tokens, E width of the table, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.fine_tuning.tokens import Batch

POOLING = SparsePooling()


class _LargestLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_NTE: Tensor, table_VE: Tensor, keep_NT: Tensor) -> Tensor:
        kind = table_VE.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        columns = table_VE if dtype is None else table_VE.to(dtype)
        largest, places = [], []
        for text_TE, keep_T in zip(hidden_NTE, keep_NT, strict=True):
            kept_TE = text_TE[keep_T].to(columns.dtype)
            best_V, place_V = F.linear(columns, kept_TE).max(dim=1)
            largest.append(best_V.float())
            places.append(keep_T.nonzero().squeeze(1)[place_V])
        ctx.save_for_backward(hidden_NTE, table_VE, torch.stack(places))
        return torch.stack(largest)

    @staticmethod
    def backward(ctx: Any, gradient_NV: Tensor) -> tuple[Tensor | None, ...]:
        hidden_NTE, table_VE, places_NV = ctx.saved_tensors
        of_hidden_NTE = torch.zeros_like(hidden_NTE)
        of_table_VE = torch.zeros_like(table_VE)
        for index, gradient_V in enumerate(gradient_NV):
            words = gradient_V.nonzero().squeeze(1)
            places, column = places_NV[index, words], gradient_V[words, None]
            of_hidden_NTE[index].index_add_(0, places, (column * table_VE[words]).to(hidden_NTE))
            of_table_VE.index_add_(0, words, (column * hidden_NTE[index, places]).to(table_VE))
        return of_hidden_NTE, of_table_VE, None


def embed(model: TiedEncoder, batch: Batch) -> Tensor:
    """Return the weights (N, V) of the texts of a batch, with the maximum as pooling."""
    return POOLING.activate(pooled_logits(model, batch))


def pooled_logits(model: TiedEncoder, batch: Batch) -> Tensor:
    """Return the largest logit (N, V) of each word over the tokens of a text."""
    table_VE = model.output_projection()
    input_ids, attention_mask, token_types = batch.inputs(table_VE.device)
    hidden_NTE = model.head(model.hidden(input_ids, attention_mask, token_types))
    keep_NT = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    logits_NV: Tensor = _LargestLogits.apply(hidden_NTE, table_VE, keep_NT.bool())  # type: ignore[no-untyped-call]
    # after the maximum, because the bias of a word is the same for all tokens
    return logits_NV if model.head_bias is None else logits_NV + model.head_bias

"""Mappings of ESM-1b (Rives et al. 2021), ESM-2 (Lin et al. 2023) and ESM C checkpoints."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.families.eurobert import LLAMA_BLOCKS
from fillmask_model.checkpoints.families.roberta import (
    CLASSIFIERS,
    HEAD,
    PAD_TOKEN_ID,
    offset_positions,
)
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.mapping.rotary import check_head_width, read_rotary
from fillmask_model.encoder.config import EncoderConfig

_POSITIONS = ("absolute", "rotary")
# of ESM C
_BASE, _NORM_EPS = 10_000.0, 1e-5


def read(fields: Fields) -> ParsedConfig:
    """Read ESM's config.json.

    Positions are learned or rotary. Token dropout is optional.
    """
    fields.expect_encoder()
    pad_token_id = fields.whole_number("pad_token_id", PAD_TOKEN_ID)
    mask_token_id = fields.get("mask_token_id", None)
    token_dropout = fields.get("token_dropout", default=False)
    positions = fields.get("position_embedding_type", "absolute")
    if positions not in _POSITIONS:
        raise ValueError(f"position_embedding_type must be absolute or rotary (got {positions!r})")
    if token_dropout and mask_token_id is None:
        raise ValueError(
            "token_dropout needs mask_token_id, which is missing; add mask_token_id to config.json"
        )
    common = fields.common()
    check_head_width(fields, common)
    rotary_base = fields.number("rope_theta", 10_000.0)
    config = EncoderConfig(
        **common,
        type_vocab_size=0,
        norm_placement="pre",
        norm_eps=fields.number("layer_norm_eps", 1e-12),
        embedding_norm=fields.get("emb_layer_norm_before", default=False),
        final_norm=True,
        positions="none" if positions == "rotary" else "learned",
        rotary_base=rotary_base if positions == "rotary" else None,
        token_dropout_id=mask_token_id if token_dropout else None,
    )
    parsed = ParsedConfig(config)
    return parsed if positions == "rotary" else offset_positions(parsed, pad_token_id)


def read_esmc(fields: Fields) -> ParsedConfig:
    common = fields.common(tied=False)
    fields.expect("num_key_value_heads", common["num_heads"])
    config = EncoderConfig(
        **common,
        **read_rotary(fields, common, _BASE),
        type_vocab_size=0,
        norm_placement="pre",
        norm_eps=_NORM_EPS,
        embedding_norm=False,
        final_norm=True,
        attention_bias=fields.get("attention_bias", default=False),
        query_key_norm=True,
        ffn_bias="both" if fields.get("mlp_bias", default=False) else "none",
        gated_ffn=True,
        activation=fields.activation("hidden_act", "silu"),
        head_activation="gelu_erf",
        positions="none",
    )
    return ParsedConfig(config, convert=partial(_convert_esmc, layers=config.num_layers))


def _convert_esmc(tensors: dict[str, Tensor], *, layers: int) -> None:
    """Divide the blocks' outputs by ESM C's factor, and give the last norm a shift of zero."""
    factor = math.sqrt(layers / 36)
    for name, tensor in dict(tensors).items():
        module = name.rpartition(".")[0]
        if module.startswith("blocks.") and module.endswith((".output", ".ffn_out")):
            tensors[name] = tensor.float() / factor
        if name == "final_norm.weight":
            tensors.setdefault("final_norm.bias", torch.zeros_like(tensor))


FAMILY = Family(
    read=read,
    prefix="esm.",
    names={
        "embeddings.word_embeddings": "embeddings.word",
        "embeddings.position_embeddings": "embeddings.position",
        "embeddings.layer_norm": "embeddings.norm",
        **bert.LINEARS,
        "encoder.layer.{}.attention.LayerNorm": "blocks.{}.attention_norm",
        "encoder.layer.{}.LayerNorm": "blocks.{}.ffn_norm",
        "encoder.emb_layer_norm_after": "final_norm",
        **HEAD,
    },
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    buffers=(r"embeddings\.position_ids", r".*rotary_embeddings\.inv_freq"),
    classifiers=CLASSIFIERS,
)
ESMC = Family(
    read=read_esmc,
    prefix="esmc.",
    names={
        **LLAMA_BLOCKS,
        "layers.{}.self_attn.q_norm": "blocks.{}.query_norm",
        "layers.{}.self_attn.k_norm": "blocks.{}.key_norm",
        **HEAD,
    },
    decoder="lm_head.decoder",
    classifiers=CLASSIFIERS,
)

"""Mapping of GTE checkpoints (Zhang et al. 2024), published as `new` and as `gte`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.families.nomic import GATED_BLOCKS
from fillmask_model.checkpoints.families.roberta import HEAD
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.mapping.rotary import read_rotary
from fillmask_model.encoder.config import EncoderConfig

_BASE = 160_000.0  # default of rope_theta in transformers
_OLDER_BASE = 10_000.0  # default of rope_theta in the code of `new`


def read(fields: Fields, base: float = _BASE) -> ParsedConfig:
    """Read the config.json of a `gte`.

    Args:
        base: default of rope_theta.
    """
    # fields of the repositories' code
    fields.expect("position_embedding_type", "rope")
    fields.expect("layer_norm_type", "layer_norm")
    fields.expect("logn_attention_scale", False)  # noqa: FBT003 - a value of the file
    common = fields.common()
    config = EncoderConfig(
        **common,
        **read_rotary(fields, common, base),
        type_vocab_size=fields.get("type_vocab_size", 1),
        norm_eps=fields.number("layer_norm_eps", 1e-12),
        activation=fields.activation("hidden_act"),
        head_activation="gelu_erf",
        gated_ffn=True,
        ffn_bias="output",
        positions="none",
    )
    return ParsedConfig(config)


_PUBLISHED: dict[str, str | tuple[str, ...]] = {
    "encoder.layer.{}.attention.qkv_proj": ("blocks.{}.query", "blocks.{}.key", "blocks.{}.value"),
    "encoder.layer.{}.attention.q_proj": "blocks.{}.query",
    "encoder.layer.{}.attention.k_proj": "blocks.{}.key",
    "encoder.layer.{}.attention.v_proj": "blocks.{}.value",
    "encoder.layer.{}.attention.o_proj": "blocks.{}.output",
    "encoder.layer.{}.mlp.up_gate_proj": ("blocks.{}.ffn_gate", "blocks.{}.ffn_in"),
    "encoder.layer.{}.mlp.down_proj": "blocks.{}.ffn_out",
    "encoder.layer.{}.attn_ln": "blocks.{}.attention_norm",
    "encoder.layer.{}.mlp_ln": "blocks.{}.ffn_norm",
    "lm_head.norm": "head.norm",
}
FAMILY = Family(
    read=read,
    prefix="gte.",
    other_prefixes=("new.",),
    names={**_PUBLISHED, **bert.EMBEDDINGS, **GATED_BLOCKS, **HEAD},
    decoder="lm_head.decoder",
    buffers=(*bert.BUFFERS, r".*rotary_emb\.inv_freq"),
    classifiers=bert.POOLED,
    code=("Gte", "New"),
)
NEW = replace(FAMILY, read=partial(read, base=_OLDER_BASE), prefix="new.", other_prefixes=())

"""Mapping of ESM-2 (Lin et al. 2023) and ESM-1b (Rives et al. 2021) checkpoints."""

from __future__ import annotations

from fillmask_model.checkpoints.families.family import Family, ParsedConfig
from fillmask_model.checkpoints.families.fields import Fields
from fillmask_model.checkpoints.families.roberta import (
    CLASSIFIERS,
    HEAD,
    PAD_TOKEN_ID,
    offset_positions,
)
from fillmask_model.encoder.config import EncoderConfig

_POSITIONS = ("absolute", "rotary")


def read(fields: Fields) -> ParsedConfig:
    """Read ESM's config.json.

    Positions are learned or rotary. Token dropout is optional.
    """
    fields.expect("is_folding_model", False)  # noqa: FBT003 - a value of the file
    fields.expect("esmfold_config", None)
    fields.get("vocab_list", None)
    fields.expect("hidden_act", "gelu")
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
    rotary_base = fields.number("rope_theta", 10_000.0)
    config = EncoderConfig(
        **fields.common(),
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


FAMILY = Family(
    read=read,
    prefix="esm.",
    names={
        "embeddings.word_embeddings": "embeddings.word",
        "embeddings.position_embeddings": "embeddings.position",
        "embeddings.layer_norm": "embeddings.norm",
        "encoder.layer.{}.attention.self.query": "blocks.{}.query",
        "encoder.layer.{}.attention.self.key": "blocks.{}.key",
        "encoder.layer.{}.attention.self.value": "blocks.{}.value",
        "encoder.layer.{}.attention.output.dense": "blocks.{}.output",
        "encoder.layer.{}.attention.LayerNorm": "blocks.{}.attention_norm",
        "encoder.layer.{}.intermediate.dense": "blocks.{}.ffn_in",
        "encoder.layer.{}.output.dense": "blocks.{}.ffn_out",
        "encoder.layer.{}.LayerNorm": "blocks.{}.ffn_norm",
        "encoder.emb_layer_norm_after": "final_norm",
        **HEAD,
    },
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    ignored=(
        r"embeddings\.position_ids",
        r".*rotary_embeddings\.inv_freq",
        r"contact_head\..*",
        r"pooler\..*",
    ),
    classifiers=CLASSIFIERS,
)

"""Mapping of MPNet checkpoints (Song et al. 2020)."""

from __future__ import annotations

from dataclasses import replace

from fillmask_model.checkpoints.families import bert, roberta
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields

BUCKETS = 32  # transformers always uses 32 buckets, whatever number the file has


def read(fields: Fields) -> ParsedConfig:
    fields.expect("relative_attention_num_buckets", BUCKETS)
    parsed = roberta.offset_positions(bert.read(fields), roberta.PAD_TOKEN_ID)
    config = replace(parsed.config, type_vocab_size=0, relative_buckets=BUCKETS)
    return ParsedConfig(config, parsed.skipped_positions)


FAMILY = Family(
    read=read,
    prefix="mpnet.",
    names={
        **bert.EMBEDDINGS,
        "encoder.relative_attention_bias.weight": "relative_bias",
        "encoder.layer.{}.attention.attn.q": "blocks.{}.query",
        "encoder.layer.{}.attention.attn.k": "blocks.{}.key",
        "encoder.layer.{}.attention.attn.v": "blocks.{}.value",
        "encoder.layer.{}.attention.attn.o": "blocks.{}.output",
        "encoder.layer.{}.attention.LayerNorm": "blocks.{}.attention_norm",
        "encoder.layer.{}.intermediate.dense": "blocks.{}.ffn_in",
        "encoder.layer.{}.output.dense": "blocks.{}.ffn_out",
        "encoder.layer.{}.output.LayerNorm": "blocks.{}.ffn_norm",
        **roberta.HEAD,
    },
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    buffers=bert.BUFFERS,
    classifiers=roberta.CLASSIFIERS,
)

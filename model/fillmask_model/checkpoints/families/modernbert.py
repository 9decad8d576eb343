"""Mapping of ModernBERT checkpoints (Warner et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fillmask_model.checkpoints.mapping.family import ClassifierMapping, Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.mapping.layer_types import (
    GLOBAL,
    LOCAL,
    check_layers,
    read_local_layers,
    read_rotary_bases,
)
from fillmask_model.checkpoints.mapping.rotary import check_head_width
from fillmask_model.encoder.classifier import Pooling
from fillmask_model.encoder.config import EncoderConfig

_BASES = {GLOBAL: ("global_rope_theta", 160_000.0), LOCAL: ("local_rope_theta", 10_000.0)}
POOLINGS: dict[str, Pooling] = {"cls": "first", "mean": "mean"}


def read(fields: Fields) -> ParsedConfig:
    """Read a ModernBERT config.json from any version of transformers."""
    common = fields.common()
    check_head_width(fields, common)
    layers = check_layers("num_hidden_layers", common["num_layers"])
    every = check_layers("global_attn_every_n_layers", fields.get("global_attn_every_n_layers", 3))
    kinds = [LOCAL if layer % every else GLOBAL for layer in range(layers)]
    local_layers = read_local_layers(fields, kinds)
    older = {kind: fields.number(*name_and_default) for kind, name_and_default in _BASES.items()}
    bases = read_rotary_bases(fields, older)
    window = fields.whole_number("local_attention", 128)
    mlp_bias = fields.get("mlp_bias", default=False)
    config = EncoderConfig(
        **common,
        type_vocab_size=0,
        norm_placement="pre",
        norm_eps=fields.number("norm_eps", 1e-5),
        norm_bias=fields.get("norm_bias", default=False),
        first_attention_norm=False,
        final_norm=True,
        attention_bias=fields.get("attention_bias", default=False),
        ffn_bias="both" if mlp_bias else "none",
        gated_ffn=True,
        activation=fields.activation("hidden_activation"),
        positions="none",
        rotary_base=bases[GLOBAL],
        local_rotary_base=bases[LOCAL] if local_layers else None,
        local_layers=local_layers,
        local_window=window // 2 if local_layers else 0,
        head_activation=fields.activation("classifier_activation"),
        head_dense_bias=fields.get("classifier_bias", default=False),
        head_bias=fields.get("decoder_bias", default=True),
    )
    return ParsedConfig(config)


def read_pooling(fields: Fields, poolings: Mapping[str, Pooling], default: str) -> Pooling:
    """Return the pooling of a classification head.

    Args:
        poolings: pooling by the value of the field.
    """
    pooling = fields.get("classifier_pooling", default)
    if not isinstance(pooling, str) or pooling not in poolings:
        raise ValueError(f"classifier_pooling must be {' or '.join(poolings)} (got {pooling!r})")
    return poolings[pooling]


def read_choices(fields: Fields, config: EncoderConfig) -> dict[str, Any]:
    """Read ModernBERT's own fields for the classification head.

    The fields `classifier_activation` and `classifier_bias` apply to both heads of ModernBERT.
    """
    return {
        "pooling": read_pooling(fields, POOLINGS, "cls"),
        "activation": config.head_activation,
        "dense_bias": config.head_dense_bias,
        "norm": True,
    }


CLASSIFIER = ClassifierMapping(
    dense="head.dense", norm="head.norm", output="classifier", choices=read_choices
)
FAMILY = Family(
    read=read,
    prefix="model.",
    names={
        "embeddings.tok_embeddings": "embeddings.word",
        "embeddings.norm": "embeddings.norm",
        "layers.{}.attn_norm": "blocks.{}.attention_norm",
        "layers.{}.attn.Wqkv": ("blocks.{}.query", "blocks.{}.key", "blocks.{}.value"),
        "layers.{}.attn.Wo": "blocks.{}.output",
        "layers.{}.mlp_norm": "blocks.{}.ffn_norm",
        "layers.{}.mlp.Wi": ("blocks.{}.ffn_in", "blocks.{}.ffn_gate"),
        "layers.{}.mlp.Wo": "blocks.{}.ffn_out",
        "final_norm": "final_norm",
        "head.dense": "head.dense",
        "head.norm": "head.norm",
    },
    decoder="decoder",
    classifiers={
        "ForSequenceClassification": CLASSIFIER,
        "ForTokenClassification": replace(CLASSIFIER, pooling="tokens"),
    },
)

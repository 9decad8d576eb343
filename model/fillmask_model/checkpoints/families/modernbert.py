"""Mapping of ModernBERT checkpoints (Warner et al. 2024)."""

from __future__ import annotations

from typing import Any

from fillmask_model.checkpoints.families.family import (
    SEQUENCE_CLASSIFICATION,
    ClassifierMapping,
    Family,
    ParsedConfig,
)
from fillmask_model.checkpoints.families.fields import Fields, to_float
from fillmask_model.encoder.classifier import Pooling
from fillmask_model.encoder.config import MAX_LAYERS, EncoderConfig

_LOCAL, _GLOBAL = "sliding_attention", "full_attention"
_BASES = {_GLOBAL: ("global_rope_theta", 160_000.0), _LOCAL: ("local_rope_theta", 10_000.0)}
_POOLINGS: dict[str, Pooling] = {"cls": "first", "mean": "mean"}
# runtime options of other libraries, which do not change the result
_RUNTIME_FIELDS = (
    "deterministic_flash_attn",
    "reference_compile",
    "repad_logits_with_grad",
    "sparse_pred_ignore_index",
    "sparse_prediction",
    "embedding_size",
)


def read(fields: Fields) -> ParsedConfig:
    """Read a ModernBERT config.json from any version of transformers.

    Version 5 moved the bases of the rotary embeddings to `rope_parameters`.
    """
    for name in _RUNTIME_FIELDS:
        fields.get(name, None)
    fields.expect("position_embedding_type", "absolute", "sans_pos")
    common = fields.common()
    local_layers = _local_layers(fields, common["num_layers"])
    bases = _rotary_bases(fields)
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
        rotary_base=bases[_GLOBAL],
        local_rotary_base=bases[_LOCAL] if local_layers else None,
        local_layers=local_layers,
        local_window=window // 2 if local_layers else 0,
        head_activation=fields.activation("classifier_activation"),
        head_dense_bias=fields.get("classifier_bias", default=False),
        head_bias=fields.get("decoder_bias", default=True),
    )
    return ParsedConfig(config)


def _local_layers(fields: Fields, layers: Any) -> tuple[int, ...]:
    every = fields.get("global_attn_every_n_layers", 3)
    if not all(type(count) is int and 0 < count <= MAX_LAYERS for count in (layers, every)):
        raise ValueError(
            "num_hidden_layers and global_attn_every_n_layers must be whole numbers from 1 to "
            f"{MAX_LAYERS} (got {layers!r} and {every!r})"
        )
    default = [_LOCAL if layer % every else _GLOBAL for layer in range(layers)]
    kinds = fields.get("layer_types", default)
    known = isinstance(kinds, list) and all(kind in (_LOCAL, _GLOBAL) for kind in kinds)
    if not known or len(kinds) != layers:
        raise ValueError(
            f"layer_types must have one entry {_LOCAL} or {_GLOBAL} per layer, {layers} in total "
            f"(got {kinds!r})"
        )
    return tuple(layer for layer, kind in enumerate(kinds) if kind == _LOCAL)


def _rotary_bases(fields: Fields) -> dict[str, float]:
    parameters = _object("rope_parameters", fields.get("rope_parameters", {}))
    if unknown := set(parameters) - set(_BASES):
        raise ValueError(
            f"rope_parameters may contain only {' and '.join(_BASES)} (got {min(unknown)})"
        )
    fields.expect("rope_scaling", None)
    bases = {}
    for kind, (name, default) in _BASES.items():
        path = f"rope_parameters.{kind}"
        of_kind = dict(_object(path, parameters.get(kind) or {}))
        if (rope_type := of_kind.pop("rope_type", "default")) != "default":
            raise ValueError(f"{path}.rope_type must be default (got {rope_type!r})")
        older = fields.number(name, default)
        bases[kind] = to_float(f"{path}.rope_theta", of_kind.pop("rope_theta", older))
        if of_kind:
            raise ValueError(
                f"{path} may contain only rope_type and rope_theta (got {min(of_kind)})"
            )
    return bases


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
    return value


def read_choices(fields: Fields, config: EncoderConfig) -> dict[str, Any]:
    """Read ModernBERT's own fields for the classification head.

    The fields `classifier_activation` and `classifier_bias` apply to both heads of ModernBERT.
    """
    pooling = fields.get("classifier_pooling", "cls")
    if not isinstance(pooling, str) or pooling not in _POOLINGS:
        raise ValueError(f"classifier_pooling must be {' or '.join(_POOLINGS)} (got {pooling!r})")
    return {
        "pooling": _POOLINGS[pooling],
        "activation": config.head_activation,
        "dense_bias": config.head_dense_bias,
        "norm": True,
    }


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
        SEQUENCE_CLASSIFICATION: ClassifierMapping(
            dense="head.dense", norm="head.norm", output="classifier", choices=read_choices
        )
    },
)

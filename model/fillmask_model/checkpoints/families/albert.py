"""Mapping of ALBERT checkpoints (Lan et al. 2020)."""

from __future__ import annotations

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig, classifiers_of
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.mapping.layer_types import check_layers
from fillmask_model.encoder.config import EncoderConfig

_LAYER = "encoder.albert_layer_groups.{}.albert_layers.{}"


def read(fields: Fields) -> ParsedConfig:
    """Read ALBERT's config.json.

    The layers of a group share one block.
    """
    fields.expect("inner_group_num", 1)
    fields.expect("position_embedding_type", "absolute")
    common = fields.common()
    layers = check_layers("num_hidden_layers", common["num_layers"])
    groups = fields.get("num_hidden_groups", 1)
    if type(groups) is not int or not 0 < groups <= layers:
        raise ValueError(
            "num_hidden_groups must be a whole number from 1 to num_hidden_layers, "
            f"{layers} (got {groups!r})"
        )
    config = EncoderConfig(
        **common,
        type_vocab_size=fields.get("type_vocab_size", 2),
        norm_eps=fields.number("layer_norm_eps", 1e-12),
        activation=fields.activation("hidden_act", "gelu_new"),
        embedding_size=fields.get("embedding_size", 128),
        block_order=tuple(int(layer / (layers / groups)) for layer in range(layers)),
    )
    return ParsedConfig(config)


FAMILY = Family(
    read=read,
    prefix="albert.",
    names={
        **bert.EMBEDDINGS,
        "encoder.embedding_hidden_mapping_in": "embeddings.projection",
        f"{_LAYER}.attention.query": "blocks.{}.query",
        f"{_LAYER}.attention.key": "blocks.{}.key",
        f"{_LAYER}.attention.value": "blocks.{}.value",
        f"{_LAYER}.attention.dense": "blocks.{}.output",
        f"{_LAYER}.attention.LayerNorm": "blocks.{}.attention_norm",
        f"{_LAYER}.ffn": "blocks.{}.ffn_in",
        f"{_LAYER}.ffn_output": "blocks.{}.ffn_out",
        f"{_LAYER}.full_layer_layer_norm": "blocks.{}.ffn_norm",
        "predictions.dense": "head.dense",
        "predictions.LayerNorm": "head.norm",
    },
    decoder="predictions.decoder",
    bias="predictions.bias",
    buffers=bert.BUFFERS,
    classifiers=classifiers_of(dense="pooler", output="classifier"),
)

"""Mapping of DistilBERT checkpoints (Sanh et al. 2019)."""

from __future__ import annotations

from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig, classifiers_of
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.config import EncoderConfig


def read(fields: Fields) -> ParsedConfig:
    """Read DistilBERT's config.json.

    Checkpoints store sinusoidal positions in the same tensor as learned positions.
    """
    config = EncoderConfig(
        vocab_size=fields.required("vocab_size"),
        d_model=fields.required("dim"),
        num_layers=fields.required("n_layers"),
        num_heads=fields.required("n_heads"),
        d_ff=fields.required("hidden_dim"),
        max_positions=fields.required("max_position_embeddings"),
        type_vocab_size=0,
        activation=fields.activation("activation"),
        tied=fields.get("tie_word_embeddings", default=True),
    )
    return ParsedConfig(config)


FAMILY = Family(
    read=read,
    prefix="distilbert.",
    names={
        "embeddings.word_embeddings": "embeddings.word",
        "embeddings.position_embeddings": "embeddings.position",
        "embeddings.LayerNorm": "embeddings.norm",
        "transformer.layer.{}.attention.q_lin": "blocks.{}.query",
        "transformer.layer.{}.attention.k_lin": "blocks.{}.key",
        "transformer.layer.{}.attention.v_lin": "blocks.{}.value",
        "transformer.layer.{}.attention.out_lin": "blocks.{}.output",
        "transformer.layer.{}.sa_layer_norm": "blocks.{}.attention_norm",
        "transformer.layer.{}.ffn.lin1": "blocks.{}.ffn_in",
        "transformer.layer.{}.ffn.lin2": "blocks.{}.ffn_out",
        "transformer.layer.{}.output_layer_norm": "blocks.{}.ffn_norm",
        "vocab_transform": "head.dense",
        "vocab_layer_norm": "head.norm",
    },
    decoder="vocab_projector",
    buffers=(r"embeddings\.position_ids",),
    classifiers=classifiers_of(dense="pre_classifier", output="classifier", activation="relu"),
)

"""Mapping of ELECTRA generators and classifiers (Clark et al. 2020)."""

from __future__ import annotations

from dataclasses import replace

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig, classifiers_of
from fillmask_model.checkpoints.mapping.fields import Fields


def read(fields: Fields) -> ParsedConfig:
    """Read ELECTRA's config.json.

    Embeddings of width d_model have no projection.
    """
    embedding_size = fields.get("embedding_size", 128)
    config = bert.read(fields).config
    width = 0 if embedding_size == config.d_model else embedding_size
    return ParsedConfig(replace(config, embedding_size=width, head_activation="gelu_erf"))


FAMILY = Family(
    read=read,
    prefix="electra.",
    names={
        **bert.EMBEDDINGS,
        **bert.BLOCKS,
        "embeddings_project": "embeddings.projection",
        "generator_predictions.dense": "head.dense",
        "generator_predictions.LayerNorm": "head.norm",
    },
    decoder="generator_lm_head",
    buffers=bert.BUFFERS,
    classifiers=classifiers_of(
        dense="classifier.dense", output="classifier.out_proj", activation="gelu_erf"
    ),
)

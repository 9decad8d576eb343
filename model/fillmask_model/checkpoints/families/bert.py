"""Mapping of BERT checkpoints (Devlin et al. 2019)."""

from __future__ import annotations

from fillmask_model.checkpoints.families.family import (
    SEQUENCE_CLASSIFICATION,
    ClassifierMapping,
    Family,
    ParsedConfig,
)
from fillmask_model.checkpoints.families.fields import Fields
from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS
from fillmask_model.encoder.config import EncoderConfig

EMBEDDINGS = {
    "embeddings.word_embeddings": "embeddings.word",
    "embeddings.position_embeddings": "embeddings.position",
    "embeddings.token_type_embeddings": "embeddings.token_type",
    "embeddings.LayerNorm": "embeddings.norm",
}
BLOCKS = {
    "encoder.layer.{}.attention.self.query": "blocks.{}.query",
    "encoder.layer.{}.attention.self.key": "blocks.{}.key",
    "encoder.layer.{}.attention.self.value": "blocks.{}.value",
    "encoder.layer.{}.attention.output.dense": "blocks.{}.output",
    "encoder.layer.{}.attention.output.LayerNorm": "blocks.{}.attention_norm",
    "encoder.layer.{}.intermediate.dense": "blocks.{}.ffn_in",
    "encoder.layer.{}.output.dense": "blocks.{}.ffn_out",
    "encoder.layer.{}.output.LayerNorm": "blocks.{}.ffn_norm",
}
NEXT_SENTENCE = ClassifierMapping(
    dense="pooler.dense", output="cls.seq_relationship", labels=NEXT_SENTENCE_LABELS
)
IGNORED = (r"pooler\..*", r"embeddings\.position_ids", r"embeddings\.token_type_ids")


def read(fields: Fields) -> ParsedConfig:
    """Read BERT's config.json."""
    fields.expect("position_embedding_type", "absolute")
    config = EncoderConfig(
        **fields.common(),
        type_vocab_size=fields.get("type_vocab_size", 2),
        norm_eps=fields.number("layer_norm_eps", 1e-12),
        activation=fields.activation("hidden_act"),
    )
    return ParsedConfig(config)


FAMILY = Family(
    read=read,
    prefix="bert.",
    names={
        **EMBEDDINGS,
        **BLOCKS,
        "cls.predictions.transform.dense": "head.dense",
        "cls.predictions.transform.LayerNorm": "head.norm",
    },
    decoder="cls.predictions.decoder",
    bias="cls.predictions.bias",
    ignored=(*IGNORED, r"cls\.seq_relationship\..*"),
    classifiers={
        SEQUENCE_CLASSIFICATION: ClassifierMapping(dense="pooler.dense", output="classifier"),
        "ForNextSentencePrediction": NEXT_SENTENCE,
        "ForPreTraining": NEXT_SENTENCE,
    },
)

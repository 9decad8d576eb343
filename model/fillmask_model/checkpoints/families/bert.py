"""Mappings of BERT (Devlin et al. 2019), ERNIE and Megatron-BERT checkpoints."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from torch import Tensor

from fillmask_model.checkpoints.mapping.family import (
    ClassifierMapping,
    Family,
    ParsedConfig,
    classifiers_of,
)
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.classifier import NEXT_SENTENCE_LABELS
from fillmask_model.encoder.config import EncoderConfig

UNNORMED_EMBEDDINGS = {
    "embeddings.word_embeddings": "embeddings.word",
    "embeddings.position_embeddings": "embeddings.position",
    "embeddings.token_type_embeddings": "embeddings.token_type",
}
EMBEDDINGS = {**UNNORMED_EMBEDDINGS, "embeddings.LayerNorm": "embeddings.norm"}
LINEARS = {
    "encoder.layer.{}.attention.self.query": "blocks.{}.query",
    "encoder.layer.{}.attention.self.key": "blocks.{}.key",
    "encoder.layer.{}.attention.self.value": "blocks.{}.value",
    "encoder.layer.{}.attention.output.dense": "blocks.{}.output",
    "encoder.layer.{}.intermediate.dense": "blocks.{}.ffn_in",
    "encoder.layer.{}.output.dense": "blocks.{}.ffn_out",
}
BLOCKS = {
    **LINEARS,
    "encoder.layer.{}.attention.output.LayerNorm": "blocks.{}.attention_norm",
    "encoder.layer.{}.output.LayerNorm": "blocks.{}.ffn_norm",
}
HEAD = {
    "cls.predictions.transform.dense": "head.dense",
    "cls.predictions.transform.LayerNorm": "head.norm",
}
NEXT_SENTENCE = ClassifierMapping(
    dense="pooler.dense", output="cls.seq_relationship", labels=NEXT_SENTENCE_LABELS
)
POOLED = classifiers_of(dense="pooler.dense", output="classifier")
CLASSIFIERS = {
    **POOLED,
    "ForNextSentencePrediction": NEXT_SENTENCE,
    "ForPreTraining": NEXT_SENTENCE,
}
BUFFERS = (r"embeddings\.position_ids", r"embeddings\.token_type_ids")
# table of ERNIE's tasks, of which masked language modelling always has the first
_TASK_TYPES = "embeddings.task_type.weight"
_TOKEN_TYPES = "embeddings.token_type.weight"  # noqa: S105 - a table of embeddings


def read(fields: Fields) -> ParsedConfig:
    fields.expect_encoder()
    # of transformers 4, whose later versions ignore it
    fields.expect("position_embedding_type", "absolute")
    config = EncoderConfig(
        **fields.common(),
        type_vocab_size=fields.get("type_vocab_size", 2),
        norm_eps=fields.number("layer_norm_eps", 1e-12),
        activation=fields.activation("hidden_act"),
    )
    return ParsedConfig(config)


def read_ernie(fields: Fields) -> ParsedConfig:
    """Read the config.json of an ERNIE (Sun et al. 2020)."""
    used = fields.get("use_task_id", default=False)
    return replace(read(fields), convert=partial(_add_task, used=used))


def _add_task(tensors: dict[str, Tensor], *, used: bool) -> None:
    """Add the embedding of the first task, which every token has, to those of the token types."""
    tasks = tensors.pop(_TASK_TYPES, None)
    if used and tasks is not None and _TOKEN_TYPES in tensors:
        tensors[_TOKEN_TYPES] = tensors[_TOKEN_TYPES].float() + tasks[0].float()


def read_megatron(fields: Fields) -> ParsedConfig:
    """Read the config.json of a Megatron-BERT (Shoeybi et al. 2019, section 5.3)."""
    config = replace(read(fields).config, norm_placement="pre", embedding_norm=False)
    return ParsedConfig(replace(config, final_norm=True))


FAMILY = Family(
    read=read,
    prefix="bert.",
    names={**EMBEDDINGS, **BLOCKS, **HEAD},
    decoder="cls.predictions.decoder",
    bias="cls.predictions.bias",
    buffers=BUFFERS,
    classifiers=CLASSIFIERS,
    code=("dnabert_layer.Bert", "dnabert_layer.DNABert"),  # a copy of transformers' BERT
)
ERNIE = replace(
    FAMILY,
    read=read_ernie,
    prefix="ernie.",
    names={**FAMILY.names, "embeddings.task_type_embeddings": "embeddings.task_type"},
)
MEGATRON = replace(
    FAMILY,
    read=read_megatron,
    names={
        **UNNORMED_EMBEDDINGS,
        **LINEARS,
        "encoder.layer.{}.attention.ln": "blocks.{}.attention_norm",
        "encoder.layer.{}.ln": "blocks.{}.ffn_norm",
        "encoder.ln": "final_norm",
        **HEAD,
    },
)

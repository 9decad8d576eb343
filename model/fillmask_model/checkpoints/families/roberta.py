"""Mapping of RoBERTa (Liu et al. 2019), CamemBERT and XLM-RoBERTa checkpoints."""

from __future__ import annotations

from dataclasses import replace

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.families.family import (
    SEQUENCE_CLASSIFICATION,
    ClassifierMapping,
    Family,
    ParsedConfig,
)
from fillmask_model.checkpoints.families.fields import Fields

HEAD = {"lm_head.dense": "head.dense", "lm_head.layer_norm": "head.norm"}
CLASSIFIERS = {
    SEQUENCE_CLASSIFICATION: ClassifierMapping(
        dense="classifier.dense", output="classifier.out_proj"
    )
}
PAD_TOKEN_ID = 1


def offset_positions(parsed: ParsedConfig, pad_token_id: int) -> ParsedConfig:
    """Return the configuration without the position rows that RoBERTa skips.

    RoBERTa skips the rows 0 to `pad_token_id`. The head always uses the erf form of GELU.
    """
    skipped = pad_token_id + 1
    positions = parsed.config.max_positions - skipped
    config = replace(parsed.config, max_positions=positions, head_activation="gelu_erf")
    return ParsedConfig(config, skipped)


def read(fields: Fields) -> ParsedConfig:
    """Read RoBERTa's config.json."""
    pad_token_id = fields.whole_number("pad_token_id", PAD_TOKEN_ID)
    return offset_positions(bert.read(fields), pad_token_id)


FAMILY = Family(
    read=read,
    prefix="roberta.",
    names={**bert.EMBEDDINGS, **bert.BLOCKS, **HEAD},
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    ignored=bert.IGNORED,
    classifiers=CLASSIFIERS,
)

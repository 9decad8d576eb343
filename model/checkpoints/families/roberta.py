"""RoBERTa (Liu et al. 2019), CamemBERT and XLM-RoBERTa, as their ForMaskedLM classes store them."""

from __future__ import annotations

from dataclasses import replace

from model.checkpoints.families import bert
from model.checkpoints.families.family import Family, Reading
from model.checkpoints.families.fields import Fields

HEAD = {"lm_head.dense": "head.dense", "lm_head.layer_norm": "head.norm"}
PAD_TOKEN_ID = 1


def after_padding(reading: Reading, pad_token_id: int) -> Reading:
    """Positions are counted from the padding token's id plus one."""
    skipped = pad_token_id + 1
    positions = reading.config.max_positions - skipped
    config = replace(reading.config, max_positions=positions, head_activation="gelu_erf")
    return Reading(config, skipped)


def read(fields: Fields) -> Reading:
    """RoBERTa's config.json; its head has the GELU by erf whatever the blocks have."""
    pad_token_id = fields.get("pad_token_id", PAD_TOKEN_ID)
    return after_padding(bert.read(fields), pad_token_id)


FAMILY = Family(
    read=read,
    prefix="roberta.",
    names={**bert.EMBEDDINGS, **bert.BLOCKS, **HEAD},
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    ignored=bert.IGNORED,
)

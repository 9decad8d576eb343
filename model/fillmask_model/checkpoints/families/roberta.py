"""Mappings of RoBERTa checkpoints (Liu et al. 2019) and of architectures that derive from them.

CamemBERT and XLM-RoBERTa have RoBERTa's architecture, and data2vec's text encoder (Baevski et al.
2022) has other names. Pre-layer-norm RoBERTa (Ott et al. 2019) and XLM-RoBERTa-XL (Goyal et al.
2021) have norms before attention and before the feed-forward network.
"""

from __future__ import annotations

from dataclasses import replace

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig, classifiers_of
from fillmask_model.checkpoints.mapping.fields import Fields

HEAD = {"lm_head.dense": "head.dense", "lm_head.layer_norm": "head.norm"}
CLASSIFIERS = classifiers_of(dense="classifier.dense", output="classifier.out_proj")
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
    pad_token_id = fields.whole_number("pad_token_id", PAD_TOKEN_ID)
    return offset_positions(bert.read(fields), pad_token_id)


def read_prelayernorm(fields: Fields) -> ParsedConfig:
    parsed = read(fields)
    return replace(parsed, config=replace(parsed.config, norm_placement="pre", final_norm=True))


def read_xl(fields: Fields) -> ParsedConfig:
    """Read the config.json of an XLM-RoBERTa-XL, whose embeddings have no norm."""
    parsed = read_prelayernorm(fields)
    eps = fields.number("layer_norm_eps", 1e-5)
    config = replace(parsed.config, embedding_norm=False, norm_eps=eps)
    return replace(parsed, config=replace(config, type_vocab_size=fields.get("type_vocab_size", 1)))


FAMILY = Family(
    read=read,
    prefix="roberta.",
    names={**bert.EMBEDDINGS, **bert.BLOCKS, **HEAD},
    decoder="lm_head.decoder",
    bias="lm_head.bias",
    buffers=bert.BUFFERS,
    classifiers=CLASSIFIERS,
)
DATA2VEC = replace(FAMILY, prefix="data2vec_text.")
PRELAYERNORM = replace(
    FAMILY,
    read=read_prelayernorm,
    prefix="roberta_prelayernorm.",
    names={
        **bert.EMBEDDINGS,
        **bert.LINEARS,
        "encoder.layer.{}.attention.LayerNorm": "blocks.{}.attention_norm",
        "encoder.layer.{}.intermediate.LayerNorm": "blocks.{}.ffn_norm",
        "LayerNorm": "final_norm",
        **HEAD,
    },
)
XL = replace(
    FAMILY,
    read=read_xl,
    names={
        **bert.UNNORMED_EMBEDDINGS,
        **bert.LINEARS,
        "encoder.layer.{}.attention.self_attn_layer_norm": "blocks.{}.attention_norm",
        "encoder.layer.{}.LayerNorm": "blocks.{}.ffn_norm",
        "encoder.LayerNorm": "final_norm",
        **HEAD,
    },
)

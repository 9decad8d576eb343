"""Mapping of NeoBERT checkpoints (Le Breton et al. 2025)."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.config import EncoderConfig

_ROUNDED_TO = 8  # the width of the feed-forward network is a multiple of it
_PACKED = "qkv.weight"


def read(fields: Fields) -> ParsedConfig:
    """Read NeoBERT's config.json, which states the width of a feed-forward network without gate."""
    heads = fields.required("num_attention_heads")
    ungated = fields.whole_number("intermediate_size", 3072)
    config = EncoderConfig(
        vocab_size=fields.required("vocab_size"),
        d_model=fields.required("hidden_size"),
        num_layers=fields.required("num_hidden_layers"),
        num_heads=heads,
        d_ff=-(-int(2 * ungated / 3) // _ROUNDED_TO) * _ROUNDED_TO,
        max_positions=fields.required("max_length"),
        tied=False,
        type_vocab_size=0,
        norm_placement="pre",
        norm_kind="rms",
        norm_eps=fields.number("norm_eps", 1e-6),
        embedding_norm=False,
        final_norm=True,
        attention_bias=False,
        ffn_bias="none",
        gated_ffn=True,
        activation="silu",
        positions="none",
        rotary_base=10_000.0,
        head_transform=False,
    )
    return ParsedConfig(config, convert=partial(_unpack, heads=heads))


def _unpack(tensors: dict[str, Tensor], *, heads: int) -> None:
    """Split the queries, keys and values, which each head stores together.

    Rotary embeddings turn neighbouring channels of these checkpoints. Ours turn a channel of the
    first half and one of the second half.
    """
    for name in [name for name in tensors if name.endswith(_PACKED)]:
        packed = tensors.pop(name)
        if len(packed) % (6 * heads):  # so that tensors are missing
            continue
        query, key, value = packed.view(heads, 3, -1, packed.shape[-1]).unbind(1)
        block = name.removesuffix(_PACKED)
        tensors[f"{block}query.weight"] = _halves(query)
        tensors[f"{block}key.weight"] = _halves(key)
        tensors[f"{block}value.weight"] = value.flatten(0, 1)


def _halves(x_HdD: Tensor) -> Tensor:
    heads, width, inputs = x_HdD.shape
    return x_HdD.reshape(heads, width // 2, 2, inputs).transpose(1, 2).reshape(-1, inputs)


FAMILY = Family(
    read=read,
    prefix="model.",
    names={
        "encoder": "embeddings.word",
        "transformer_encoder.{}.qkv": "blocks.{}.qkv",
        "transformer_encoder.{}.wo": "blocks.{}.output",
        "transformer_encoder.{}.attention_norm": "blocks.{}.attention_norm",
        "transformer_encoder.{}.ffn_norm": "blocks.{}.ffn_norm",
        "transformer_encoder.{}.ffn.w12": ("blocks.{}.ffn_in", "blocks.{}.ffn_gate"),
        "transformer_encoder.{}.ffn.w3": "blocks.{}.ffn_out",
        "layer_norm": "final_norm",
    },
    decoder="decoder",
    buffers=(r"freqs_cis",),
    code=("NeoBERT",),
)

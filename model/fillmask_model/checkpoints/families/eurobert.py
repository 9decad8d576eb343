"""Mappings of EuroBERT (Boizard et al. 2025) and UltraBERT checkpoints."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor

from fillmask_model.checkpoints.families.modernbert import POOLINGS, read_pooling
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig, classifiers_of
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.mapping.layer_types import (
    GLOBAL,
    LOCAL,
    check_layers,
    read_local_layers,
    read_rotary_bases,
)
from fillmask_model.checkpoints.mapping.rotary import check_head_width, read_rotary
from fillmask_model.encoder.classifier import Pooling
from fillmask_model.encoder.config import EncoderConfig

_BASE = 10_000.0  # default of rope_theta
_BASES = {LOCAL: 10_000.0, GLOBAL: 2_560_000.0}  # defaults of UltraBERT
LLAMA_LINEARS = {
    "layers.{}.self_attn.q_proj": "blocks.{}.query",
    "layers.{}.self_attn.k_proj": "blocks.{}.key",
    "layers.{}.self_attn.v_proj": "blocks.{}.value",
    "layers.{}.self_attn.o_proj": "blocks.{}.output",
    "layers.{}.mlp.gate_proj": "blocks.{}.ffn_in",
    "layers.{}.mlp.up_proj": "blocks.{}.ffn_gate",
    "layers.{}.mlp.down_proj": "blocks.{}.ffn_out",
}
LLAMA_BLOCKS = {
    **LLAMA_LINEARS,
    "embed_tokens": "embeddings.word",
    "layers.{}.input_layernorm": "blocks.{}.attention_norm",
    "layers.{}.post_attention_layernorm": "blocks.{}.ffn_norm",
    "norm": "final_norm",
}
_POOLINGS: dict[str, Pooling] = {"bos": "first", "mean": "mean", "late": "mean"}


def read(fields: Fields) -> ParsedConfig:
    common = fields.common(tied=False)
    config = EncoderConfig(
        **common,
        **_blocks(fields, 1e-5),
        **read_rotary(fields, common, _BASE),
        head_transform=False,
        head_bias=fields.get("mlp_bias", default=False),
    )
    return ParsedConfig(config, convert=_spread_of(fields, config))


def read_ultrabert(fields: Fields) -> ParsedConfig:
    """Read UltraBERT's config.json.

    Published files have a window and a rotary base for each layer.
    """
    common = fields.common(tied=False)
    check_head_width(fields, common)
    layers = check_layers("num_hidden_layers", common["num_layers"])
    windows = fields.get("attention_windows", None)
    kinds = [LOCAL if (layer + 1) % 3 else GLOBAL for layer in range(layers)]
    window = fields.whole_number("sliding_window", 128)
    bases = _BASES
    if isinstance(windows, list) and len(windows) == layers:
        kinds = [LOCAL if one else GLOBAL for one in windows]
        window = next((one for one in windows if one), window)
        if any(one and one != window for one in windows):
            raise ValueError(f"attention_windows must have one width above 0 (got {windows!r})")
    thetas = fields.get("rope_theta", None)
    if isinstance(thetas, list) and len(thetas) == layers:
        bases = bases | dict(zip(kinds, thetas, strict=True))
    local_layers = read_local_layers(fields, kinds)
    bases = read_rotary_bases(fields, bases)
    config = EncoderConfig(
        **common,
        **_blocks(fields, 1e-6),
        rotary_base=bases[GLOBAL],
        local_rotary_base=bases[LOCAL] if local_layers else None,
        local_layers=local_layers,
        local_window=window if local_layers else 0,
        head_activation="gelu_tanh",
        head_inner=fields.get("prediction_head_size", 768),
        head_dense_bias=False,
        head_norm=False,
        head_bias=False,
    )
    return ParsedConfig(config, convert=_spread_of(fields, config))


def _blocks(fields: Fields, eps: float) -> dict[str, Any]:
    """Return the fields of `EncoderConfig` for the blocks of both families."""
    return {
        "type_vocab_size": 0,
        "norm_placement": "pre",
        "norm_kind": "rms",
        "norm_eps": fields.number("rms_norm_eps", eps),
        "embedding_norm": False,
        "final_norm": True,
        "attention_bias": fields.get("attention_bias", default=False),
        "ffn_bias": "both" if fields.get("mlp_bias", default=False) else "none",
        "gated_ffn": True,
        "activation": fields.activation("hidden_act", "silu"),
        "positions": "none",
    }


def _spread_of(fields: Fields, config: EncoderConfig) -> partial[None]:
    heads = fields.whole_number("num_key_value_heads", config.num_heads)
    if not 0 < heads <= config.num_heads or config.num_heads % heads:
        raise ValueError(
            f"num_key_value_heads must divide num_attention_heads, {config.num_heads} (got {heads})"
        )
    return partial(_spread_keys_and_values, heads=heads, times=config.num_heads // heads)


def _spread_keys_and_values(tensors: dict[str, Tensor], *, heads: int, times: int) -> None:
    """Repeat the keys and values that several heads share (Ainslie et al. 2023).

    A graph of its own for them would save less than a tenth of these encoders' work.
    """
    for name, tensor in tensors.items():
        module = name.rpartition(".")[0]
        if times > 1 and module.endswith((".key", ".value")) and not len(tensor) % heads:
            by_head = tensor.view(heads, -1, *tensor.shape[1:])
            tensors[name] = by_head.repeat_interleave(times, 0).flatten(0, 1)


def read_choices(fields: Fields, _: EncoderConfig) -> dict[str, Any]:
    """Read the pooling of EuroBERT's classification head.

    Its default, "late", is the mean of the logits of all tokens.
    """
    pooling = read_pooling(fields, _POOLINGS, "late")
    return {"pooling": pooling, "pool_last": fields.get("classifier_pooling", "late") == "late"}


def read_ultrabert_choices(fields: Fields, _: EncoderConfig) -> dict[str, Any]:
    """Read the pooling of UltraBERT's classification head, which has only an output layer."""
    return {"pooling": read_pooling(fields, POOLINGS, "cls"), "activation": None}


FAMILY = Family(
    read=read,
    prefix="model.",
    names=LLAMA_BLOCKS,
    decoder="lm_head",
    classifiers=classifiers_of(
        dense="dense", output="classifier", activation="gelu_erf", choices=read_choices
    ),
    code=("EuroBert",),
)
ULTRABERT = Family(
    read=read_ultrabert,
    prefix="ultrabert.",
    names={**LLAMA_BLOCKS, "head.linear1": "head.inner", "head.linear2": "head.dense"},
    decoder="cls",
    classifiers=classifiers_of(dense="", output="classifier", choices=read_ultrabert_choices),
    code=("Ultrabert", "UltraBERT"),
)

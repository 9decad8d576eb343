"""Mapping of Nomic BERT checkpoints (Nussbaum et al. 2024).

Published files have the fields of GPT-2 and the names of the repository's own code. Files that
transformers has written have other names, and biases in the head.
"""

from __future__ import annotations

from typing import Any

from fillmask_model.checkpoints.families import bert
from fillmask_model.checkpoints.families.eurobert import LLAMA_LINEARS
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.mapping.rotary import read_rotary
from fillmask_model.encoder.config import EncoderConfig

_BASE = 1_000.0  # default of rope_theta
_SIZES = {
    "d_model": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "d_ff": "n_inner",
}
# fields of choices that no published masked language model makes, with the value of all of them
_FIXED: dict[str, Any] = {
    "activation_function": "swiglu",
    "causal": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "num_experts": 0,
    "parallel_block": False,
    "prenorm": False,
    "qkv_proj_bias": False,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "use_rms_norm": False,
}


def read(fields: Fields) -> ParsedConfig:
    """Read the config.json of a Nomic BERT in either form."""
    published = fields.get("n_embd", None) is not None
    config = _published(fields) if published else _of_transformers(fields)
    return ParsedConfig(
        EncoderConfig(
            **config,
            type_vocab_size=fields.get("type_vocab_size", 2),
            attention_bias=False,
            ffn_bias="none",
            gated_ffn=True,
            positions="none",
        )
    )


def _published(fields: Fields) -> dict[str, Any]:
    for name, value in _FIXED.items():
        fields.expect(name, value)
    fields.expect("rotary_emb_fraction", 1.0, 1)
    # longer texts than max_trained_positions would need the scaling of the repository's code
    positions = fields.get("max_trained_positions", None) or fields.required("n_positions")
    return {
        "vocab_size": fields.required("vocab_size"),
        **{ours: fields.required(theirs) for ours, theirs in _SIZES.items()},
        "max_positions": positions,
        "tied": fields.get("tie_word_embeddings", default=True),
        "norm_eps": fields.number("layer_norm_epsilon", 1e-5),
        "activation": "silu",
        "rotary_base": fields.number("rotary_emb_base", 10_000.0),
        "head_dense_bias": False,
        "head_bias": False,
    }


def _of_transformers(fields: Fields) -> dict[str, Any]:
    common = fields.common()
    return {
        **common,
        **read_rotary(fields, common, _BASE),
        "norm_eps": fields.number("layer_norm_eps", 1e-12),
        "activation": fields.activation("hidden_act", "silu"),
    }


_PUBLISHED: dict[str, str | tuple[str, ...]] = {
    "emb_ln": "embeddings.norm",
    "encoder.layers.{}.attn.Wqkv": ("blocks.{}.query", "blocks.{}.key", "blocks.{}.value"),
    "encoder.layers.{}.attn.out_proj": "blocks.{}.output",
    "encoder.layers.{}.mlp.fc11": "blocks.{}.ffn_gate",
    "encoder.layers.{}.mlp.fc12": "blocks.{}.ffn_in",
    "encoder.layers.{}.mlp.fc2": "blocks.{}.ffn_out",
    "encoder.layers.{}.norm1": "blocks.{}.attention_norm",
    "encoder.layers.{}.norm2": "blocks.{}.ffn_norm",
}
GATED_BLOCKS = {
    **LLAMA_LINEARS,
    "layers.{}.post_attention_layernorm": "blocks.{}.attention_norm",
    "layers.{}.post_mlp_layernorm": "blocks.{}.ffn_norm",
}
FAMILY = Family(
    read=read,
    prefix="nomic_bert.",
    other_prefixes=("bert.",),
    names={
        **_PUBLISHED,
        **bert.EMBEDDINGS,
        **GATED_BLOCKS,
        "cls.predictions.transform.dense": "head.dense",
        "cls.predictions.transform.layer_norm": "head.norm",
    },
    decoder="cls.predictions.decoder",
    bias="cls.predictions.bias",
    buffers=(*bert.BUFFERS, r".*rotary_emb\.inv_freq"),
    classifiers=bert.POOLED,
    code=("NomicBert",),
)

"""BERT (Devlin et al. 2019), as Hugging Face's BertForMaskedLM and BertModel store it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from model.config import Activation, EncoderConfig
from model.families.family import Family

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}

# values the encoder computes; anything else would change the maths
_REQUIRED_VALUES: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}

_EMBEDDINGS = {
    "word_embeddings.weight": "embeddings.word.weight",
    "position_embeddings.weight": "embeddings.position.weight",
    "token_type_embeddings.weight": "embeddings.token_type.weight",
    "LayerNorm.weight": "embeddings.norm.weight",
    "LayerNorm.bias": "embeddings.norm.bias",
}
_BLOCK_PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "ffn_in",
    "output.dense": "ffn_out",
    "output.LayerNorm": "ffn_norm",
}
_HEAD = {
    "cls.predictions.transform.dense.weight": "head.dense.weight",
    "cls.predictions.transform.dense.bias": "head.dense.bias",
    "cls.predictions.transform.LayerNorm.weight": "head.norm.weight",
    "cls.predictions.transform.LayerNorm.bias": "head.norm.bias",
    "cls.predictions.bias": "head_bias",
}
_BLOCK_NAME = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)")


def read_config(fields: Mapping[str, Any]) -> EncoderConfig:
    """BERT's config.json to an EncoderConfig.

    Raises:
        ValueError: a field is missing, or has a value this encoder does not compute.
    """
    for name, required in _REQUIRED_VALUES.items():
        if fields.get(name, required) != required:
            raise ValueError(f"{name} = {fields[name]!r} is not supported, only {required!r}")
    activation = fields.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise ValueError(
            f"hidden_act = {activation!r} is not supported, only {', '.join(_ACTIVATIONS)}"
        )
    try:
        return EncoderConfig(
            vocab_size=fields["vocab_size"],
            d_model=fields["hidden_size"],
            num_layers=fields["num_hidden_layers"],
            num_heads=fields["num_attention_heads"],
            d_ff=fields["intermediate_size"],
            max_positions=fields["max_position_embeddings"],
            type_vocab_size=fields.get("type_vocab_size", 2),
            norm_eps=fields.get("layer_norm_eps", 1e-12),
            activation=_ACTIVATIONS[activation],
        )
    except KeyError as error:
        raise ValueError(f"config.json lacks the field {error.args[0]}") from None


def rename(name: str) -> str | None:
    """One of BERT's tensor names to the encoder's, or None."""
    # TensorFlow-era checkpoints call a layer norm's parameters gamma and beta
    name = name.removeprefix("bert.")
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
    if name in _HEAD:
        return _HEAD[name]
    if name.startswith("embeddings."):
        return _EMBEDDINGS.get(name.removeprefix("embeddings."))
    if (match := _BLOCK_NAME.fullmatch(name)) and match[2] in _BLOCK_PARTS:
        return f"blocks.{match[1]}.{_BLOCK_PARTS[match[2]]}.{match[3]}"
    return None


FAMILY = Family(
    read_config=read_config,
    rename=rename,
    ignored=(
        r"(bert\.)?pooler\..*",
        r"(bert\.)?embeddings\.position_ids",
        r"cls\.seq_relationship\..*",
    ),
    aliases={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    head_prefixes=("head.", "head_bias"),
)

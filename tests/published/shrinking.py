"""Small forms of published configurations: the same fields, with smaller sizes."""

from __future__ import annotations

from typing import Any

_HEADS, _HEAD_WIDTH, _LAYERS, _INNER, _POSITIONS = 3, 8, 4, 28, 90
_WIDTH = _HEADS * _HEAD_WIDTH
# fields with the same meaning in different families
_SIZES = {
    **dict.fromkeys(("hidden_size", "dim", "n_embd"), _WIDTH),
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer"), _LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_heads", "n_head"), _HEADS),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "n_inner"), _INNER),
    **dict.fromkeys(("head_dim", "dim_head"), _HEAD_WIDTH),
}
_LENGTHS = ("max_position_embeddings", "n_positions", "max_trained_positions", "max_length")


def shrink(config: dict[str, Any], vocabulary: int, ids: dict[str, int]) -> dict[str, Any]:
    """Return a configuration with smaller sizes.

    Args:
        vocabulary: number of tokens.
        ids: ids of special tokens by field, which replace those of the larger vocabulary.
    """
    small = {name: _SIZES.get(name, value) for name, value in config.items()}
    for name in _LENGTHS:
        if isinstance(small.get(name), int):
            small[name] = min(small[name], _POSITIONS)
    if "vocab_size" in small:
        small["vocab_size"] = vocabulary
    small |= {name: token_id for name, token_id in ids.items() if small.get(name) is not None}
    if "embedding_size" in config:  # ALBERT's and ELECTRA's, also those above hidden_size
        ratio = config["embedding_size"] / config["hidden_size"]
        small["embedding_size"] = round(_WIDTH * min(max(ratio, 0.5), 2))
    if "num_key_value_heads" in config:
        shared = config["num_key_value_heads"] < config["num_attention_heads"]
        small["num_key_value_heads"] = 1 if shared else _HEADS
    if "num_hidden_groups" in config:
        small["num_hidden_groups"] = min(config["num_hidden_groups"], _LAYERS)
    if "prediction_head_size" in config:
        small["prediction_head_size"] = _WIDTH - 4
    # lists with an entry for each layer
    layers = config.get("num_hidden_layers")
    return small | {
        name: value[:_LAYERS]
        for name, value in config.items()
        if isinstance(value, list) and len(value) == layers
    }

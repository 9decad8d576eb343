"""Small forms of published configurations: the same fields, with smaller sizes."""

from __future__ import annotations

from typing import Any

HEADS, HEAD_WIDTH, LAYERS, INNER = 3, 8, 4, 28
_POSITIONS = 90
_WIDTH = HEADS * HEAD_WIDTH
# fields with the same meaning in different families, by the size that replaces their values
_SIZES = {
    "hidden_size": _WIDTH,
    "dim": _WIDTH,
    "n_embd": _WIDTH,
    "num_hidden_layers": LAYERS,
    "n_layers": LAYERS,
    "n_layer": LAYERS,
    "num_attention_heads": HEADS,
    "n_heads": HEADS,
    "n_head": HEADS,
    "intermediate_size": INNER,
    "hidden_dim": INNER,
    "n_inner": INNER,
    "head_dim": HEAD_WIDTH,
    "dim_head": HEAD_WIDTH,
    "prediction_head_size": 20,
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
    for name, token_id in ids.items():
        if small.get(name) is not None:
            small[name] = token_id
    return small | _relative_sizes(config)


def _relative_sizes(config: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes that depend on others, and lists with an entry for each layer."""
    small: dict[str, Any] = {}
    if "embedding_size" in config:  # ALBERT's and ELECTRA's, also those above hidden_size
        ratio = config["embedding_size"] / config["hidden_size"]
        small["embedding_size"] = round(_WIDTH * min(max(ratio, 0.5), 2))
    if "num_key_value_heads" in config:
        shared = config["num_key_value_heads"] < config["num_attention_heads"]
        small["num_key_value_heads"] = 1 if shared else HEADS
    if "num_hidden_groups" in config:
        small["num_hidden_groups"] = min(config["num_hidden_groups"], LAYERS)
    layers = config.get("num_hidden_layers")
    by_layer = {
        name: value[:LAYERS]
        for name, value in config.items()
        if isinstance(value, list) and len(value) == layers
    }
    return small | by_layer

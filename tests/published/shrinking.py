"""Small forms of published configurations: the same fields, with smaller sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

_POSITIONS = 90


class Sizes(NamedTuple):
    """Sizes of a small model."""

    heads: int = 3
    head_width: int = 8
    layers: int = 4
    inner: int = 28

    @property
    def width(self) -> int:
        """Width of the hidden states."""
        return self.heads * self.head_width


TINY = Sizes()
# fields with the same meaning in different families, by the size that replaces their values
_FIELDS = {
    "width": ("hidden_size", "dim", "n_embd"),
    "layers": ("num_hidden_layers", "n_layers", "n_layer"),
    "heads": ("num_attention_heads", "n_heads", "n_head"),
    "inner": ("intermediate_size", "hidden_dim", "n_inner"),
    "head_width": ("head_dim", "dim_head"),
}
_LENGTHS = ("max_position_embeddings", "n_positions", "max_trained_positions", "max_length")


def shrink(
    config: dict[str, Any], vocabulary: int, ids: dict[str, int], sizes: Sizes = TINY
) -> dict[str, Any]:
    """Return a configuration with smaller sizes.

    Args:
        vocabulary: number of tokens.
        ids: ids of special tokens by field, which replace those of the larger vocabulary.
    """
    by_field = {field: getattr(sizes, size) for size, fields in _FIELDS.items() for field in fields}
    small = {name: by_field.get(name, value) for name, value in config.items()}
    for name in _LENGTHS:
        if isinstance(small.get(name), int):
            small[name] = min(small[name], _POSITIONS)
    if "vocab_size" in small:
        small["vocab_size"] = vocabulary
    for name, token_id in ids.items():
        if small.get(name) is not None:
            small[name] = token_id
    return small | _relative_sizes(config, sizes)


def _relative_sizes(config: dict[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Return the sizes that depend on others, and lists with an entry for each layer."""
    small: dict[str, Any] = {}
    if "embedding_size" in config:  # ALBERT's and ELECTRA's, also those above hidden_size
        ratio = config["embedding_size"] / config["hidden_size"]
        small["embedding_size"] = round(sizes.width * min(max(ratio, 0.5), 2))
    if "num_key_value_heads" in config:
        shared = config["num_key_value_heads"] < config["num_attention_heads"]
        small["num_key_value_heads"] = 1 if shared else sizes.heads
    if "num_hidden_groups" in config:
        small["num_hidden_groups"] = min(config["num_hidden_groups"], sizes.layers)
    if "prediction_head_size" in config:
        small["prediction_head_size"] = sizes.width - 4
    layers = config.get("num_hidden_layers")
    by_layer = {
        name: value[: sizes.layers]
        for name, value in config.items()
        if isinstance(value, list) and len(value) == layers
    }
    return small | by_layer

"""Checks of the values in an encoder's configuration."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from fillmask_model.encoder.config import EncoderConfig

_SIZES = ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff", "max_positions")
# sizes of optional parts, 0 without the part
_OPTIONAL_SIZES = (
    "type_vocab_size",
    "embedding_size",
    "relative_buckets",
    "local_window",
    "head_inner",
)
# The limits keep mistaken sizes from exhausting memory, and the bytes of a tensor within 64 bits.
# The largest known encoders have 250,002 tokens and 48 layers.
MAX_SIZE = 2**24
MAX_LAYERS = 1_000


def check_encoder_config(config: EncoderConfig, choices: dict[str, Any]) -> None:
    """Check the values of an encoder's configuration.

    Args:
        choices: literal type of each field with a fixed set of values.

    Raises:
        ValueError: a value is invalid or does not fit the other values.
    """
    _check_sizes(config)
    _check_choices(config, choices)
    _check_head(config)
    _check_layers(config)
    _check_positions(config)


def _check_sizes(config: EncoderConfig) -> None:
    for names, least in ((_SIZES, 1), (_OPTIONAL_SIZES, 0)):
        for name in names:
            value = getattr(config, name)
            most = MAX_LAYERS if name == "num_layers" else MAX_SIZE
            if type(value) is not int or not least <= value <= most:
                raise ValueError(
                    f"{name} must be a whole number from {least} to {most} (got {value!r})"
                )
    if config.d_model % config.num_heads:
        raise ValueError(
            f"d_model must be a multiple of num_heads (got {config.d_model} and {config.num_heads})"
        )
    if not isinstance(config.norm_eps, float) or not 0 < config.norm_eps < 1:
        raise ValueError(f"norm_eps must be a float above 0 and below 1 (got {config.norm_eps!r})")


def _check_choices(config: EncoderConfig, choices: dict[str, Any]) -> None:
    for name, literal in choices.items():
        value, allowed = getattr(config, name), get_args(literal)
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")
    # a configuration may come from JSON, and Python treats the string "false" as true
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type == "bool" and type(value) is not bool:
            raise ValueError(f"{field.name} must be true or false (got {value!r})")


def _check_head(config: EncoderConfig) -> None:
    if config.head_transform:
        return
    if config.embedding_size not in {0, config.d_model}:
        raise ValueError(
            f"embedding_size must be 0 or d_model, {config.d_model}, if head_transform is false "
            f"(got {config.embedding_size})"
        )
    if config.head_inner:
        raise ValueError(
            f"head_inner must be 0 if head_transform is false (got {config.head_inner})"
        )


def _check_layers(config: EncoderConfig) -> None:
    layers = range(config.num_layers)
    for name in ("block_order", "local_layers"):
        numbers = getattr(config, name)
        if not (
            isinstance(numbers, tuple) and all(type(n) is int and n in layers for n in numbers)
        ):
            raise ValueError(
                f"{name} must be a list of whole numbers from 0 to {len(layers) - 1} "
                f"(got {numbers!r})"
            )
    if config.block_order and len(config.block_order) != config.num_layers:
        raise ValueError(
            "block_order must be empty or have one entry per layer, "
            f"{config.num_layers} in total (got {len(config.block_order)})"
        )
    if set(config.layers) != set(range(config.num_blocks)):
        raise ValueError(
            f"block_order must contain every number from 0 to {config.num_blocks - 1} "
            f"(got {config.block_order!r})"
        )
    if tuple(sorted(set(config.local_layers))) != config.local_layers:
        raise ValueError(
            "local_layers must be in ascending order without repeated layers "
            f"(got {config.local_layers!r})"
        )
    if bool(config.local_layers) != bool(config.local_window):
        raise ValueError(
            "local_layers and local_window need each other; set both or neither "
            f"(got {config.local_layers!r} and {config.local_window})"
        )
    if config.local_layers and config.relative_buckets:
        raise ValueError(
            "local_layers and relative_buckets exclude each other; set relative_buckets to 0"
        )


def _check_positions(config: EncoderConfig) -> None:
    for name in ("rotary_base", "local_rotary_base"):
        base = getattr(config, name)
        if base is not None and not (type(base) is float and 1 < base < float("inf")):
            raise ValueError(f"{name} must be a finite float above 1 (got {base!r})")
    if config.rotary_base is not None and (config.d_model // config.num_heads) % 2:
        raise ValueError(f"rotary_base needs an even head width (got {config.head_width})")
    wanted = config.rotary_base is not None and bool(config.local_layers)
    if (config.local_rotary_base is not None) != wanted:
        raise ValueError(
            "local_rotary_base must be set if and only if rotary_base and local_layers are set "
            f"(got {config.local_rotary_base!r})"
        )
    _check_rotary_scaling(config)
    if config.relative_buckets % 4:
        raise ValueError(
            f"relative_buckets must be a multiple of 4 (got {config.relative_buckets})"
        )
    token = config.token_dropout_id
    if token is not None and not (type(token) is int and 0 <= token < config.vocab_size):
        raise ValueError(
            f"token_dropout_id must be a whole number from 0 to {config.vocab_size - 1} "
            f"(got {token!r})"
        )


def _check_rotary_scaling(config: EncoderConfig) -> None:
    frequencies, gain = config.rotary_frequencies, config.rotary_gain
    positive = isinstance(frequencies, tuple) and all(
        type(one) is float and 0 < one < float("inf") for one in frequencies
    )
    if not positive or (frequencies and len(frequencies) != config.head_width // 2):
        raise ValueError(
            "rotary_frequencies must be a list of positive floats, one for each two of the "
            f"{config.head_width} channels of a head, or be empty (got {frequencies!r})"
        )
    if frequencies and config.rotary_base is None:
        raise ValueError("rotary_frequencies needs rotary_base; set both or neither")
    if not (type(gain) is float and 0 < gain < float("inf")):
        raise ValueError(f"rotary_gain must be a positive finite float (got {gain!r})")

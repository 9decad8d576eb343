"""Reader of local and global attention in a config.json (Warner et al. 2024, section 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.validation import MAX_LAYERS

LOCAL, GLOBAL = "sliding_attention", "full_attention"


def check_layers(name: str, value: Any) -> int:
    """Return a number of layers."""
    if type(value) is not int or not 0 < value <= MAX_LAYERS:
        raise ValueError(f"{name} must be a whole number from 1 to {MAX_LAYERS} (got {value!r})")
    return value


def read_local_layers(fields: Fields, default: list[str]) -> tuple[int, ...]:
    """Return the layers with local attention.

    Args:
        default: type of each layer without the field layer_types.
    """
    kinds = fields.get("layer_types", default)
    known = isinstance(kinds, list) and all(kind in (LOCAL, GLOBAL) for kind in kinds)
    if not known or len(kinds) != len(default):
        raise ValueError(
            f"layer_types must have one entry {LOCAL} or {GLOBAL} per layer, {len(default)} in "
            f"total (got {kinds!r})"
        )
    return tuple(layer for layer, kind in enumerate(kinds) if kind == LOCAL)


def read_rotary_bases(fields: Fields, older: Mapping[str, float]) -> dict[str, float]:
    """Return the bases of the rotary embeddings of both types of layers.

    Version 5 of transformers moved them to `rope_parameters`.

    Args:
        older: base of each type without an entry there.
    """
    fields.expect("rope_scaling", None)
    parameters = fields.section("rope_parameters")
    if unknown := {name for name, _ in parameters.items()} - set(older):
        raise ValueError(
            f"rope_parameters may contain only {' and '.join(sorted(older))} (got {min(unknown)})"
        )
    bases = {}
    for kind, base in older.items():
        of_kind = parameters.section(kind)
        of_kind.expect("rope_type", "default")
        bases[kind] = of_kind.number("rope_theta", base)
    return bases

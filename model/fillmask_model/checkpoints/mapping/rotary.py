"""Reader of the rotary position embeddings in a config.json.

transformers 5 stores their parameters in `rope_parameters`. Earlier versions use `rope_theta` and
`rope_scaling`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.positions import base_frequencies
from fillmask_model.encoder.validation import MAX_SIZE


def read_rotary(fields: Fields, sizes: Mapping[str, Any], default_base: float) -> dict[str, Any]:
    """Return the fields of `EncoderConfig` for rotary position embeddings.

    Args:
        sizes: fields of `EncoderConfig` with the sizes.
        default_base: base without a field for it.
    """
    check_head_width(fields, sizes)
    head_width, positions = _head_width(sizes), sizes["max_positions"]
    base = fields.number("rope_theta", default_base)
    older = fields.section("rope_scaling")
    section = older if older.items() else fields.section("rope_parameters")
    base = section.number("rope_theta", base)
    kind = section.get("rope_type", None) or section.get("type", "default")
    section.expect("partial_rotary_factor", 1.0, 1)
    frequencies, gain = _scaled(section, kind, head_width, base, positions)
    if frequencies is None:
        return {"rotary_base": base}
    return {
        "rotary_base": base,
        "rotary_frequencies": tuple(frequencies.tolist()),
        "rotary_gain": gain,
    }


def check_head_width(fields: Fields, sizes: Mapping[str, Any]) -> None:
    """Check that all heads together are as wide as the hidden states."""
    fields.expect("head_dim", _head_width(sizes))


def _head_width(sizes: Mapping[str, Any]) -> int:
    """Return the width of an attention head, or 0 for sizes that `EncoderConfig` rejects."""
    width, heads, positions = (sizes[name] for name in ("d_model", "num_heads", "max_positions"))
    valid = all(type(one) is int and 0 < one <= MAX_SIZE for one in (width, heads, positions))
    return width // heads if valid and not width % heads else 0


def _scaled(
    section: Fields, kind: object, head_width: int, base: float, positions: int
) -> tuple[Tensor | None, float]:
    """Return the frequencies (d/2,), None for those of the base, and the factor of the angles."""
    if not 1 < base < math.inf or not head_width or head_width % 2:
        return None, 1.0  # which EncoderConfig rejects
    match kind:
        # "dynamic" changes the base only beyond max_position_embeddings
        case "default" | "dynamic":
            return None, 1.0
        case "linear":
            return base_frequencies(head_width, base) / section.positive("factor"), 1.0
        case "ntk":  # of GTE's first code
            factor = section.positive("factor")
            frequencies = base_frequencies(head_width, base * factor)
            return frequencies / factor ** (2 / head_width), 1.0
        case "yarn":
            return _yarn(section, head_width, base, positions)
        case "llama3":
            return _llama3(section, base_frequencies(head_width, base), positions), 1.0
    raise ValueError(
        f"{section.path}rope_type must be default, linear, dynamic, ntk, yarn or llama3 "
        f"(got {kind!r})"
    )


def _yarn(section: Fields, head_width: int, base: float, positions: int) -> tuple[Tensor, float]:
    """Compute the frequencies and the factor of YaRN (Peng et al. 2023, sections 3.2 to 3.4)."""
    trained = section.positive("original_max_position_embeddings", positions)
    factor = section.positive("factor", positions / trained)

    def pair(rotations: float) -> float:
        """Return the pair of channels that rotates this often over the trained positions."""
        turns = trained / (rotations * 2 * math.pi)
        return head_width * math.log(turns) / (2 * math.log(base))

    first = pair(section.positive("beta_fast", 32.0))
    last = pair(section.positive("beta_slow", 1.0))
    if section.get("truncate", default=True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_width - 1)
    steps = torch.arange(head_width // 2, dtype=torch.float32)
    slow = ((steps - first) / (last - first or 0.001)).clamp(0, 1)
    exact = base_frequencies(head_width, base)
    gain = _attention_gain(factor)
    if section.get("mscale", 0) and section.get("mscale_all_dim", 0):
        above, below = (section.positive(name) for name in ("mscale", "mscale_all_dim"))
        gain = _attention_gain(factor, above) / _attention_gain(factor, below)
    gain = section.positive("attention_factor", gain)
    return exact / factor * slow + exact * (1 - slow), gain


def _attention_gain(factor: float, scale: float = 1.0) -> float:
    return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0


def _llama3(section: Fields, exact: Tensor, positions: int) -> Tensor:
    """Compute the frequencies of Llama 3.1 (Grattafiori et al. 2024)."""
    trained = section.positive("original_max_position_embeddings", positions)
    factor = section.positive("factor")
    low, high = (section.positive(f"{name}_freq_factor") for name in ("low", "high"))
    if not low < high:
        raise ValueError(
            f"{section.path}low_freq_factor must be below high_freq_factor (got {low} and {high})"
        )
    rotations = trained * exact / (2 * math.pi)
    kept = ((rotations - low) / (high - low)).clamp(0, 1)
    return exact / factor * (1 - kept) + exact * kept

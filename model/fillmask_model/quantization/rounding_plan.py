"""Rounding plan with smoothing factors and float32 channels of each linear layer's input.

Activations have one scale per row at run time. Weights have one scale per output. Two exact
transformations reduce the rounding error:
- Smoothing multiplies input channels and divides weight columns by factors that balance the ranges
  of both (`fillmask_model.quantization.smoothing`).
- The graph computes the few channels with the largest effect on the rows' scales in float32
  (Dettmers et al. 2022, section 3, but with fixed channels). The float32 channels are channels of
  the head, of GELU's outputs and of the layer norm outputs that enter attention. One or two of the
  float32 channels of an input are outliers. The other float32 channels improve accuracy only a
  little.

Exceptions:
- GELU's outputs have no smoothing factors, because a product over the widest rows of the graph is
  expensive. In a gated feed-forward network they have factors, because the weights of the gate can
  contain the factors.
- Attention outputs have no float32 channels. The values' weights contain the factors of the
  attention outputs.
- The input of the feed-forward network has no float32 channels, because adding the float32 product
  to the int8 product reads and writes the widest rows again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.calibration import calibrate
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.layer_precision import (
    VOCABULARY,
    is_int8_linear,
    shared_input_name,
)
from fillmask_model.quantization.smoothing import smoothing_factors

# chosen by measurements (docs/decisions/003)
FLOAT_CHANNELS, FLOAT_HIDDEN_CHANNELS = 4, 32
CALIBRATION_TOKENS = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class RoundingPlan:
    """Smoothing factors of the input of each linear layer.

    Attributes:
        factors: (in,) float32 by the linear layer's name. The output projection has the name
            `VOCABULARY`. Channels in float32 have factor 0. Layers with the same input have the
            same factors. A plan for labels alone has no factors of the masked-language-model head.
    """

    factors: dict[str, Tensor]

    @classmethod
    def from_statistics(
        cls, model: TiedEncoder, statistics: Iterable[Mapping[str, InputStatistics]]
    ) -> RoundingPlan:
        """Choose smoothing factors and float32 channels from weights and input statistics.

        Args:
            model: encoder on the CPU.
            statistics: statistics of `fillmask_model.quantization.calibration` by layer.
        """
        found: dict[str, Tensor] = {}
        for some in statistics:
            for block in dict.fromkeys(name.rpartition(".")[0] for name in some):
                if block.startswith("blocks."):
                    found |= _block_factors(model, block, some)
            if VOCABULARY not in some:
                continue
            for name, module in model.head.named_children():
                if isinstance(module, nn.Linear):
                    rows = some[f"head.{name}"]
                    found[f"head.{name}"] = _factors(module.weight, rows, FLOAT_CHANNELS)
            found[VOCABULARY] = _factors(model.output_projection(), some[VOCABULARY], 0)
        return cls(found)

    @classmethod
    def from_rows(
        cls, model: TiedEncoder, rows: NDArray[np.integer[Any]], mask_token_id: int, seed: int
    ) -> RoundingPlan:
        """Choose smoothing factors and float32 channels from a sample of training rows.

        Args:
            model: encoder on any device.
            rows: (rows, T) token ids.
        """
        count = math.ceil(CALIBRATION_TOKENS / rows.shape[1])
        generator = np.random.default_rng(seed)
        chosen = generator.choice(len(rows), min(count, len(rows)), replace=False)
        there = copy.deepcopy(model).cpu().eval()
        texts = list(rows[chosen].astype(np.int64))
        return cls.from_statistics(there, calibrate(there, texts, mask_token_id))

    def check(self, model: TiedEncoder) -> None:
        """Check that the factors fit the encoder's linear layers.

        Raises:
            ValueError: factors are missing or unexpected, or have an invalid shape or value.
        """
        expected = {VOCABULARY: model.config.table_width} | {
            name: module.weight.shape[1]
            for name, module in model.named_modules()
            if is_int8_linear(name, module)
        }
        if wrong := sorted(set(expected) ^ set(self.factors)):
            raise ValueError(
                "factors must exist for exactly the linear layers "
                f"(missing or unexpected: {', '.join(wrong)})"
            )
        for name, factors in self.factors.items():
            if factors.shape != (expected[name],):
                raise ValueError(
                    f"factors of {name} must have the shape ({expected[name]},) "
                    f"(got {tuple(factors.shape)})"
                )
            if not (factors.isfinite().all() and (factors >= 0).all()):
                raise ValueError(
                    f"factors of {name} must be finite and at least 0 "
                    f"(got {float(factors.min()):g} to {float(factors.max()):g})"
                )
            outer = name.endswith(".ffn_out")
            in_int8 = name.endswith((".output", ".ffn_in", ".ffn_gate", VOCABULARY))
            if (in_int8 or (outer and model.config.gated_ffn)) and not factors.all():
                raise ValueError(
                    f"factors of {name} must be above 0, because this layer has no float32 "
                    f"channels (got {float(factors.min()):g})"
                )
            gelu = outer and not model.config.gated_ffn
            if gelu and not ((factors == 0) | (factors == 1)).all():
                raise ValueError(
                    f"factors of {name} must be 0 or 1 "
                    f"(got {float(factors.min()):g} to {float(factors.max()):g})"
                )
            first = shared_input_name(name)
            if not torch.equal(factors, self.factors[first]):
                raise ValueError(
                    f"factors of {name} must equal the factors of {first}, which has the same input"
                )


def _block_factors(
    model: TiedEncoder, block: str, statistics: Mapping[str, InputStatistics]
) -> dict[str, Tensor]:
    """Return the factors of a block's layers, such as those of `blocks.0`."""
    gated = model.config.gated_ffn
    query, key = (statistics[f"{block}.{part}"] for part in ("query", "key"))
    together = [["query", "key", "value"]] if query is key else [["query"], ["key", "value"]]
    parts = [*((layers, FLOAT_CHANNELS) for layers in together), (["output"], 0)]
    parts += [(["ffn_in", "ffn_gate"], 0), (["ffn_out"], 0)] if gated else [(["ffn_in"], 0)]
    found: dict[str, Tensor] = {}
    for layers, float_channels in parts:
        names = [f"{block}.{layer}" for layer in layers]
        weight = torch.cat([model.get_parameter(f"{name}.weight") for name in names])
        factors = _factors(weight, statistics[names[0]], float_channels)
        found |= dict.fromkeys(names, factors)
    if not gated:
        hidden = f"{block}.ffn_out"
        found[hidden] = torch.ones(model.config.d_ff)
        found[hidden][choose_float_channels(statistics[hidden], FLOAT_HIDDEN_CHANNELS)] = 0
    return found


def choose_float_channels(statistics: InputStatistics, count: int) -> NDArray[np.int64]:
    """Choose the float32 channels of an input by a greedy search.

    Each step chooses the channel whose removal most reduces the rows' maxima.

    Args:
        statistics: statistics of the input on real text.
        count: number of channels, limited to an eighth of all channels. Without the limit, a narrow
            encoder is mostly float32.

    Returns:
        Ascending indices of the channels.
    """
    rows = np.abs(statistics.rows)
    each, width = np.arange(len(rows)), rows.shape[1]
    chosen: list[int] = []
    for _ in range(min(count, width // 8)):
        widest = rows.argmax(axis=1)
        largest = rows[each, widest]
        rows[each, widest] = 0
        gain = np.bincount(widest, largest**2 - rows.max(axis=1) ** 2, width)
        rows[each, widest] = largest
        chosen.append(int(gain.argmax()))
        rows[:, chosen[-1]] = 0
    return np.sort(np.array(chosen, np.int64))


def _factors(weight: Tensor, statistics: InputStatistics, float_channels: int) -> Tensor:
    in_int8 = np.ones(weight.shape[1], np.bool_)
    in_int8[choose_float_channels(statistics, float_channels)] = False
    factors = np.zeros(weight.shape[1], np.float32)
    columns = weight.detach().numpy()[:, in_int8]
    factors[in_int8] = smoothing_factors(statistics.rows[:, in_int8], columns)
    return torch.from_numpy(factors)

"""How the inputs of linear maps are prepared, so that rounding them to int8 loses little.

Activations get one scale per row at run time; weights one per output. What makes both kinds of
rounding harmless is exact before rounding:
- Equalizing: input channels are multiplied, and weight columns divided, by factors that share the
  range between the two (`model.quantization.smoothing`).
- The few channels that make the rows' scales largest are computed in float32 (Dettmers et al. 2022,
  section 3, with channels fixed in advance): where a layer norm's outputs enter attention, in the
  head, and of GELU's outputs. There is one outlier or two, and the rest gain little.
- GELU's outputs have no factors, for they would be a product of the widest rows in the graph. Where
  they are multiplied with a gate's, factors can be part of the gate's weights.
- What attention gives has factors only, so that they can be part of the values' weights.
- Before the feed-forward part no channel is in float32: adding the two products there would be a
  pass over the widest rows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.data.corpus import TokenRows
from model.encoder.encoder import TiedEncoder
from model.quantization.calibration import (
    VOCABULARY,
    InputStatistics,
    collect_statistics,
    first_of_input,
    is_rounded,
)
from model.quantization.smoothing import equalizing_factors

# measured: LOG.md, 2026-11-20
FLOAT_CHANNELS, FLOAT_HIDDEN_CHANNELS = 4, 32
CALIBRATION_TOKENS = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class RoundingPlan:
    """The factors of every rounded input.

    Attributes:
        factors: (in,) float32 by the linear map's name, and for the product with the embedding
            table by `VOCABULARY`; zero for channels in float32. Maps of one input share theirs.
    """

    factors: dict[str, Tensor]

    @classmethod
    def of(cls, model: TiedEncoder, statistics: Mapping[str, InputStatistics]) -> RoundingPlan:
        """Decide by the weights and by what the inputs are on real text.

        Args:
            model: the encoder, on the CPU.
            statistics: from `model.quantization.calibration`.
        """
        found: dict[str, Tensor] = {}
        gate = ["ffn_gate"] if model.config.gated_ffn else []
        for block in range(model.config.num_blocks):
            parts = [
                (["query", "key", "value"], FLOAT_CHANNELS),
                (["output"], 0),
                (["ffn_in", *gate], 0),
            ]
            if gate:
                parts.append((["ffn_out"], 0))
            for maps, float_channels in parts:
                names = [f"blocks.{block}.{part}" for part in maps]
                factors = _linear_factors(model, names, statistics[names[0]], float_channels)
                found |= dict.fromkeys(names, factors)
            if not gate:
                hidden = f"blocks.{block}.ffn_out"
                found[hidden] = torch.ones(model.config.d_ff)
                found[hidden][float_channels_of(statistics[hidden], FLOAT_HIDDEN_CHANNELS)] = 0
        if isinstance(dense := getattr(model.head, "dense", None), nn.Linear):
            rows = statistics["head.dense"]
            found["head.dense"] = _factors(dense.weight, rows, FLOAT_CHANNELS)
        found[VOCABULARY] = _factors(model.projection(), statistics[VOCABULARY], 0)
        return cls(found)

    @classmethod
    def by_rows(
        cls, model: TiedEncoder, rows: TokenRows, mask_token_id: int, seed: int
    ) -> RoundingPlan:
        """Decide by some rows (rows, T) of the training text.

        Args:
            model: the encoder, on any device.
            rows: token ids.
            mask_token_id: the mask.
            seed: of the choice.
        """
        count = math.ceil(CALIBRATION_TOKENS / rows.shape[1])
        generator = np.random.default_rng(seed)
        chosen = generator.choice(len(rows), min(count, len(rows)), replace=False)
        there = copy.deepcopy(model).cpu().eval()
        texts = list(rows[chosen].astype(np.int64))
        return cls.of(there, collect_statistics(there, texts, mask_token_id))

    def check(self, model: TiedEncoder) -> None:
        """See that there are factors for every map of the encoder, and nothing else.

        Raises:
            ValueError: a map has none, a name or a shape does not fit, a factor is negative or
                not finite.
        """
        expected = {VOCABULARY: model.config.table_width} | {
            name: module.weight.shape[1]
            for name, module in model.named_modules()
            if is_rounded(name, module)
        }
        if wrong := sorted(set(expected) ^ set(self.factors)):
            raise ValueError(f"factors are missing or left over: {', '.join(wrong)}")
        for name, factors in self.factors.items():
            if factors.shape != (expected[name],):
                raise ValueError(f"{name} has factors of shape {tuple(factors.shape)}")
            if not (factors.isfinite().all() and (factors >= 0).all()):
                raise ValueError(f"{name} has a factor that is negative or not finite")
            outer = name.endswith(".ffn_out")
            in_int8 = name.endswith((".output", ".ffn_in", ".ffn_gate", VOCABULARY))
            if (in_int8 or (outer and model.config.gated_ffn)) and not factors.all():
                raise ValueError(f"{name} has channels in float32, and it can have none")
            gelu = outer and not model.config.gated_ffn
            if gelu and not ((factors == 0) | (factors == 1)).all():
                raise ValueError(f"{name} has a factor other than 0 and 1")
            first = first_of_input(name)
            if not torch.equal(factors, self.factors[first]):
                raise ValueError(f"{name} has other factors than {first}, and the same input")


def float_channels_of(statistics: InputStatistics, count: int) -> NDArray[np.int64]:
    """One by one, the channel without which the rows' largest magnitudes are smallest.

    Args:
        statistics: of the input on real text.
        count: how many to compute in float32; at most an eighth of all are, for a narrow encoder
            would otherwise be mostly float32.

    Returns:
        Ascending indices.
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


def _linear_factors(
    model: TiedEncoder, names: list[str], statistics: InputStatistics, float_channels: int
) -> Tensor:
    weight = torch.cat([model.get_parameter(f"{name}.weight") for name in names])
    return _factors(weight, statistics, float_channels)


def _factors(weight: Tensor, statistics: InputStatistics, float_channels: int) -> Tensor:
    in_int8 = np.ones(weight.shape[1], np.bool_)
    in_int8[float_channels_of(statistics, float_channels)] = False
    factors = np.zeros(weight.shape[1], np.float32)
    columns = weight.detach().numpy()[:, in_int8]
    factors[in_int8] = equalizing_factors(statistics.rows[:, in_int8], columns)
    return torch.from_numpy(factors)

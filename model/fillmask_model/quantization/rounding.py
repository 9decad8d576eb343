"""Quantization-aware training with weights that are rounded to int8.

Every forward pass uses rounded weights. Gradients ignore the rounding and update the exact weights
(straight-through estimator, Bengio et al. 2013, section 4, and Jacob et al. 2018, section 3).
Checkpoints contain the rounded weights, so `export` does not change them.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.func import functional_call

from fillmask_model.encoder.encoder import TiedEncoder, output_table
from fillmask_model.quantization.layer_precision import VOCABULARY
from fillmask_model.quantization.rounding_plan import RoundingPlan

INT8_MAX = 127  # the symmetric range without -128 needs no zero point


class RoundedEncoder:
    """Encoder that computes with rounded weights.

    Args:
        model: encoder, whose own weights stay exact.
    """

    def __init__(self, model: TiedEncoder, plan: RoundingPlan) -> None:
        self.model, self.plan = model, plan
        device = model.embeddings.word.weight.device
        table = output_table(model.config)
        # factors by the name of the weight
        self._factors = {
            table if name == VOCABULARY else f"{name}.weight": factors.to(device)
            for name, factors in plan.factors.items()
        }

    def logits(self, input_ids: Tensor, mask_indicator: Tensor) -> Tensor:
        """Compute the logits (M, V).

        The arguments have the same form as in `TiedEncoder.forward`.
        """
        weights = {}
        for name, rounded in self._rounded().items():
            weight = self.model.get_parameter(name)
            weights[name] = weight + (rounded - weight).detach()
        logits_MV: Tensor = functional_call(self.model, weights, (input_ids, mask_indicator))
        return logits_MV

    def rounded_copy(self) -> TiedEncoder:
        model = copy.deepcopy(self.model)
        model.load_state_dict(self.model.state_dict() | self._rounded())
        return model

    @torch.no_grad()
    def _rounded(self) -> dict[str, Tensor]:
        return {
            name: round_weight(self.model.get_parameter(name), factors)
            for name, factors in self._factors.items()
        }


def round_weight(weight: Tensor, factors: Tensor) -> Tensor:
    """Round the rows of a weight to int8 after division of the columns by their factors.

    The function multiplies the rounded columns by their factors again. The rounding step of a row
    is a 127th of the largest magnitude in the row after the division.

    Args:
        weight: (out, in) float32 weight.
        factors: (in,) smoothing factors. Columns with factor 0 stay exact.
    """
    in_int8 = factors > 0
    smoothed = torch.where(in_int8, weight / torch.where(in_int8, factors, 1), 0)
    largest = smoothed.abs().amax(dim=-1, keepdim=True)
    steps = torch.where(largest > 0, largest / INT8_MAX, 1)
    rounded = (smoothed / steps).round() * steps * factors
    return torch.where(in_int8, rounded, weight)

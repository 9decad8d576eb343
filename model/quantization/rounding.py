"""Training for int8: the weights are held on the grid that int8 has for them.

Every pass computes with rounded weights, and gradients reach those behind them as if nothing had
been rounded (the straight-through estimator: Bengio et al. 2013, section 4; Jacob et al. 2018,
section 3). What is saved are the rounded ones, so `export` has nothing left to round.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.func import functional_call

from model.encoder.encoder import TiedEncoder, output_table
from model.quantization.calibration import VOCABULARY
from model.quantization.rounding_plan import RoundingPlan

LARGEST = 127  # symmetric: -128 is not used, so that no zero point is needed


class RoundedEncoder:
    """An encoder that is computed with rounded weights.

    Args:
        model: the encoder, whose own weights stay as they are.
        plan: factors and float32 channels.
    """

    def __init__(self, model: TiedEncoder, plan: RoundingPlan) -> None:
        self.model, self.plan = model, plan
        device = model.embeddings.word.weight.device
        table = output_table(model.config)
        # by the weight's name
        self._factors = {
            table if name == VOCABULARY else f"{name}.weight": factors.to(device)
            for name, factors in plan.factors.items()
        }

    def logits(self, input_ids: Tensor, mask_indicator: Tensor) -> Tensor:
        """Logits (M, V); arguments as for `TiedEncoder.forward`."""
        weights = {}
        for name, rounded in self._rounded().items():
            weight = self.model.get_parameter(name)
            weights[name] = weight + (rounded - weight).detach()
        logits_MV: Tensor = functional_call(self.model, weights, (input_ids, mask_indicator))
        return logits_MV

    def settled(self) -> TiedEncoder:
        """A copy of the encoder with its weights rounded."""
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
    """Rows over their factors to multiples of a 127th of their largest, and times them again.

    Args:
        weight: (out, in) float32.
        factors: (in,); columns of the factor 0 are left as they are.
    """
    in_int8 = factors > 0
    equalized = torch.where(in_int8, weight / torch.where(in_int8, factors, 1), 0)
    largest = equalized.abs().amax(dim=-1, keepdim=True)
    steps = torch.where(largest > 0, largest / LARGEST, 1)
    rounded = (equalized / steps).round() * steps * factors
    return torch.where(in_int8, rounded, weight)

"""Training with the rounding that serving in int8 does, so that the encoder learns to bear it.

Weights are held on the grid that int8 has for them: every pass computes with rounded ones, and
gradients reach those behind them as if nothing had been rounded (Jacob et al. 2018, section 3).
What is saved are the rounded ones, so export has nothing left to round.

Inputs of linear maps get a scale a row while serving, so their rounding cannot be learnt away.
Every batch is computed twice, with exact and with rounded inputs, and the loss has a share of the
distance between the two predictions. An input's step follows from its row's largest value, and
gradients see that (Esser et al. 2020, equation 3): the encoder learns rows without outliers.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from model.calibration import VOCABULARY
from model.encoder import TiedEncoder
from model.rounding_plan import RoundingPlan

SYMMETRIC_STEPS = 127  # on either side of zero
GELU_LEAST = 0.171  # the minimum of GELU is -0.16997, of its tanh form -0.17004
GELU_ZERO = 16  # the unsigned number that stands for zero in a GELU's output
GELU_STEPS, GELU_SMALLEST_STEP = 255 - GELU_ZERO, GELU_LEAST / GELU_ZERO
SMALLEST_STEP = 1e-9  # a row of zeros is not divided by zero
TABLE = "embeddings.word.weight"


class RoundedEncoder:
    """An encoder that is computed with int8's rounding.

    Args:
        model: the encoder; hooks stay on it, which do nothing outside this class.
        plan: factors and float32 channels.
    """

    def __init__(self, model: TiedEncoder, plan: RoundingPlan) -> None:
        self.model, self.plan = model, plan
        self._rounding_inputs = False
        device = model.embeddings.word.weight.device
        self._factors = {name: factors.to(device) for name, factors in plan.factors.items()}
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):
                self._hook(name, module)
        # what the head gives is the input of the product with the table
        model.head.register_forward_hook(lambda _, __, output: self._round(VOCABULARY, output))

    def logits(self, input_ids: Tensor, mask_indicator: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (M, V) with exact and with rounded inputs, weights rounded in both.

        Arguments as for `TiedEncoder.forward`.
        """
        inputs = (input_ids, mask_indicator)
        weights = {name: _straight_through(w, f) for name, w, f in self._weights()}
        exact_MV: Tensor = functional_call(self.model, weights, inputs)
        self._rounding_inputs = True
        try:
            rounded_MV: Tensor = functional_call(self.model, weights, inputs)
        finally:
            self._rounding_inputs = False
        return exact_MV, rounded_MV

    @torch.no_grad()
    def settled(self) -> TiedEncoder:
        """A copy of the encoder with its weights rounded."""
        rounded = {name: round_weight(w, f) for name, w, f in self._weights()}
        model = copy.deepcopy(self.model)
        model.load_state_dict(self.model.state_dict() | rounded)
        return model

    def _weights(self) -> list[tuple[str, Tensor, Tensor]]:
        names = {name: f"{name}.weight" for name in self._factors} | {VOCABULARY: TABLE}
        return [
            (names[name], self.model.get_parameter(names[name]), factors)
            for name, factors in self._factors.items()
        ]

    def _hook(self, name: str, module: nn.Linear) -> None:
        # in the served graph the values' bias is part of the output's
        value = f"{name.removesuffix('output')}value.bias"
        without_bias = name.endswith(".output") and self.model.config.attention_bias

        def before(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
            if not without_bias:
                return (self._round(name, inputs[0]),)
            bias = self.model.get_parameter(value).detach()
            return (self._round(name, inputs[0] - bias) + bias,)

        module.register_forward_pre_hook(before)

    def _round(self, name: str, x: Tensor) -> Tensor:
        if not self._rounding_inputs:
            return x
        return round_rows(x, self._factors[name], unsigned=name.endswith(".ffn_out"))


def round_rows(x: Tensor, factors: Tensor, *, unsigned: bool) -> Tensor:
    """Rows times their factors, rounded to multiples of a step a row, and divided again.

    For gradients, what rounding adds is a constant number of steps.

    Args:
        x: (..., in).
        factors: (in,); what has the factor 0 is left as it is.
        unsigned: whether the rows are a GELU's outputs, with a step of a 239th of their largest
            value; else it is a 127th of their largest magnitude.
    """
    rounded: Tensor = _RoundRows.apply(x, factors, unsigned)  # type: ignore[no-untyped-call]  # torch publishes no type for it
    return rounded


class _RoundRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factors: Tensor, unsigned: bool) -> Tensor:  # noqa: FBT001 - autograd passes by position
        y = x.float() * factors
        largest, index = (y if unsigned else y.abs()).max(dim=-1, keepdim=True)
        if unsigned:
            steps = largest / GELU_STEPS
            slope = (steps > GELU_SMALLEST_STEP) / GELU_STEPS
            steps = steps.clamp(min=GELU_SMALLEST_STEP)
        else:
            steps = (largest / SYMMETRIC_STEPS).clamp(min=SMALLEST_STEP)
            slope = y.gather(-1, index).sign() / SYMMETRIC_STEPS
        inverse = torch.where(factors > 0, 1 / factors, 0)
        y /= steps
        added = (y.round() - y) * inverse
        ctx.save_for_backward(added.to(x.dtype), index, slope * factors[index])
        rounded: Tensor = x + (added * steps).to(x.dtype)
        return rounded

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        # what passes straight, and what reaches the value that decides the step
        added, index, slope = ctx.saved_tensors
        along = (gradient * added).sum(dim=-1, keepdim=True) * slope
        return gradient.scatter_add(-1, index, along.to(gradient.dtype)), None, None


def round_weight(weight: Tensor, factors: Tensor) -> Tensor:
    """Rows over their factors to multiples of a 127th of their largest, and times them again.

    Args:
        weight: (out, in) float32.
        factors: (in,); columns of the factor 0 are left as they are.
    """
    in_int8 = factors > 0
    equalized = torch.where(in_int8, weight / torch.where(in_int8, factors, 1), 0)
    largest = equalized.abs().amax(dim=-1, keepdim=True)
    steps = torch.where(largest > 0, largest / SYMMETRIC_STEPS, 1)
    rounded = (equalized / steps).round() * steps * factors
    return torch.where(in_int8, rounded, weight)


def _straight_through(weight: Tensor, factors: Tensor) -> Tensor:
    with torch.no_grad():
        added = round_weight(weight, factors) - weight
    return weight + added

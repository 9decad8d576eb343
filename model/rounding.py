"""Training with the rounding that serving in int8 does, so that the encoder learns to bear it.

The inputs of every linear map, and of the product with the embedding table, are rounded row by row
as `export` has them rounded, and gradients pass as if they were not (Bengio et al. 2013, section 4,
the straight-through estimator; Jacob et al. 2018, section 3). What export does to make rounding
harmless, its factors and its channels in float32, is left out: the encoder meets the harder case.
Weights are not rounded here, export compensates for theirs.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from model.encoder import TiedEncoder

SYMMETRIC_STEPS = 127  # on either side of zero
GELU_LEAST = 0.171  # the minimum of GELU is -0.16997, of its tanh form -0.17004
GELU_ZERO = 16  # the unsigned number that stands for zero in a GELU's output
GELU_STEPS, GELU_SMALLEST_STEP = 255 - GELU_ZERO, GELU_LEAST / GELU_ZERO
SMALLEST_STEP = 1e-9  # a row of zeros is not divided by zero


def round_inputs(model: TiedEncoder) -> None:
    """Have the encoder compute with rounded inputs from now on."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            _round_before(module, _round_gelu if name.endswith(".ffn_out") else _round_symmetric)
    # what the head gives is the input of the product with the table
    model.head.register_forward_hook(lambda _, __, output: _round_symmetric(output))


def _round_before(module: nn.Module, rounding: Callable[[Tensor], Tensor]) -> None:
    module.register_forward_pre_hook(lambda _, inputs: (rounding(inputs[0]),))


def _round_symmetric(x: Tensor) -> Tensor:
    """Rows to multiples of a 127th of their largest magnitude."""
    step = x.detach().abs().amax(dim=-1, keepdim=True).float() / SYMMETRIC_STEPS
    return _straight_through(x, step)


def _round_gelu(x: Tensor) -> Tensor:
    """Rows of a GELU's outputs to multiples of a 239th of their largest value."""
    step = x.detach().amax(dim=-1, keepdim=True).float() / GELU_STEPS
    return _straight_through(x, step.clamp(min=GELU_SMALLEST_STEP))


def _straight_through(x: Tensor, step: Tensor) -> Tensor:
    values = x.detach().float()
    rounded = (values / step.clamp(min=SMALLEST_STEP)).round() * step
    return x + (rounded - values).to(x.dtype)

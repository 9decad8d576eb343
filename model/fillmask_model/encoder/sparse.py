"""Pooling of a text's logits to a sparse vector over the vocabulary (SPLADE).

Formal et al. 2021, section 3, with the sum; Formal et al. 2021 (v2), section 3.1, with the maximum;
Shen et al. 2025, section 3.2, with the second logarithm.

Shapes: T tokens of one text, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

Strategy = Literal["max", "sum"]
Activation = Literal["relu", "log1p_relu"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)


@dataclass(frozen=True, slots=True)
class SparsePooling:
    """Pooling over all tokens of a text, special tokens included.

    Attributes:
        strategy: reduction over the tokens.
        activation: "relu" for `log(1 + relu(x))`, "log1p_relu" for `log(1 + log(1 + relu(x)))`.
    """

    strategy: Strategy = "max"
    activation: Activation = "relu"

    @property
    def logarithms(self) -> int:
        """Number of times that `log(1 + x)` follows relu."""
        return 1 + (self.activation == "log1p_relu")

    def __call__(self, logits_TV: Tensor) -> Tensor:
        """Return the weights (V,) of a text."""
        weights_TV = self.activate(logits_TV)
        return weights_TV.amax(0) if self.strategy == "max" else weights_TV.sum(0)

    def activate(self, logits: Tensor) -> Tensor:
        weights = logits.relu()
        for _ in range(self.logarithms):
            weights = weights.log1p()
        return weights


@dataclass(frozen=True, slots=True)
class SparseSettings:
    """Pooling of documents and weights of queries.

    Attributes:
        max_active_dims: maximum number of dimensions of a vector. None for no maximum.
        query_weights: weight of each token (V,) in a query. None if the encoder reads queries.
    """

    pooling: SparsePooling
    max_active_dims: int | None = None
    query_weights: list[float] | None = None

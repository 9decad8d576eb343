"""Minimum number of arithmetic operations per text, from its necessary matrix products.

Shapes: T tokens, m masks, D d_model, F d_ff, V tokens of the vocabulary. A multiplication with an
addition counts as two operations.

    each layer but the last:  2 T (4 D^2 + 2 D F)  +  4 T^2 D
    last layer:               2 T 2 D^2  +  2 m (2 D^2 + 2 D F)  +  4 m T D
    head:                     2 m D^2  +  2 m D V

The last layer computes the keys and values of every token. It computes all other products only at
the masks. The count excludes norms, activations, softmax, lookups and top-k, because matrix units
do not compute these steps.
"""

from __future__ import annotations

from dataclasses import dataclass

FORMULA = "2T(4D² + 2DF) + 4T²D in each layer but the last, 4TD² + 2m(2D² + 2DF) + 4mTD in the last layer, and 2mD² + 2mDV in the head"  # noqa: E501 - one line of docs/performance.md


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of an encoder that determine its matrix products."""

    num_layers: int
    d_model: int
    d_ff: int
    vocab_size: int


def operations(sizes: Sizes, tokens: int, masks: int) -> int:
    """Return the number of operations of one text."""
    D, F, T = sizes.d_model, sizes.d_ff, tokens
    layer = 2 * T * (4 * D**2 + 2 * D * F) + 4 * T**2 * D
    last_layer = 4 * T * D**2 + 2 * masks * (2 * D**2 + 2 * D * F) + 4 * masks * T * D
    head = 2 * masks * D**2 + 2 * masks * D * sizes.vocab_size
    return (sizes.num_layers - 1) * layer + last_layer + head

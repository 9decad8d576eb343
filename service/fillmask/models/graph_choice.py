"""The choice between the stock graph of a bundle and its fused graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fillmask.bundles.bundle import Bundle
from fillmask.engine.linux.native_operators import (
    NativeOperators,
    OperatorsUnavailableError,
    find_operators,
)

GraphKind = Literal["stock", "fused"]
Native = Literal["auto", "off"]


@dataclass(frozen=True, slots=True)
class GraphChoice:
    """A graph of a bundle.

    Attributes:
        bundle: the bundle, with the golden results of this graph.
        operators: operators of a fused graph. None for the stock graph.
        packed: offsets and sizes of the weights that only the operators read.
        reason: why this graph, for the log.
    """

    bundle: Bundle
    path: Path
    operators: NativeOperators | None
    packed: Sequence[tuple[int, int]]
    reason: str

    @property
    def kind(self) -> GraphKind:
        return "stock" if self.operators is None else "fused"


def stock_graph(bundle: Bundle, reason: str) -> GraphChoice:
    """Return the graph that runs on every machine."""
    return GraphChoice(bundle, bundle.model_path, None, (), reason)


def choose_graph(bundle: Bundle, native: Native) -> GraphChoice:
    """Return the fused graph if the bundle and this machine have what it needs.

    Args:
        native: setting of the user, "off" for the stock graph.
    """
    if native == "off":
        return stock_graph(bundle, "native is off")
    if bundle.fused is None:
        return stock_graph(bundle, "the bundle has no fused graph")
    try:
        operators = find_operators(bundle.fused.operators)
    except OperatorsUnavailableError as error:
        return stock_graph(bundle, str(error))
    checked = bundle.model_copy(update={"golden": bundle.fused.golden})
    return GraphChoice(
        checked,
        bundle.fused_path,
        operators,
        [(one.offset, one.bytes) for one in bundle.fused.packed_weights],
        operators.instruction_set,
    )

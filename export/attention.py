"""Attention in the served graph: what each slot sees, and from where.

Shapes: R tokens end to end, B rows of W slots, Q most masks of a row, S = B * Q, P positions,
D d_model, d width of a head, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from export.operators import GraphBuilder
from export.weights import BIAS_BY_DISTANCE, COSINES, EVERYTHING, SINES, WINDOW

NEVER = -1e30  # added to a score, it leaves a weight of exactly 0


@dataclass(frozen=True, slots=True)
class Askers:
    """The slots that ask: all of them, or those of the masks.

    Attributes:
        texts: (B, W or Q) the text of each.
        positions: (B, W or Q) its position in it.
    """

    texts: str
    positions: str


class Attention:
    """Builds what layers share: masks by who asks and what the layer sees.

    Args:
        g: the graph so far, with the inputs of `export.graph`.
    """

    def __init__(self, g: GraphBuilder) -> None:
        self._g = g
        self._masks: dict[tuple[Askers, str], str] = {}
        self._by_slot: str | None = None

    def slots(self) -> Askers:
        """Every slot asks."""
        return Askers("slot_texts", self._slot_positions())

    def masks(self) -> Askers:
        """The masks' slots ask."""
        if not self._needs_positions():
            return Askers("query_texts", "")
        return Askers("query_texts", self._g.add("Gather", ["positions", "query_index"]))

    def kind(self, layer: int) -> str:
        """What a layer sees."""
        return WINDOW if layer in self._g.config.local_layers else EVERYTHING

    def attend(self, query: str, key_BWD: str, value_BWD: str, askers: Askers, layer: int) -> str:
        """Attention of queries (B, W or Q, D) over the slots that they see."""
        heads = self._g.config.num_heads
        inputs = [query, key_BWD, value_BWD, self._mask(askers, self.kind(layer))]
        return self._g.add("Attention", inputs, q_num_heads=heads, kv_num_heads=heads)

    def turned(self, x_RD: str, layer: int, tokens: str = "") -> str:
        """Queries or keys turned by their positions, where the encoder does that.

        Args:
            x_RD: those of every token, or of some.
            layer: whose they are.
            tokens: which tokens, where they are not all.
        """
        g = self._g
        if g.config.rotary_base is None:
            return x_RD
        positions_R = g.add("Gather", ["positions", tokens]) if tokens else "positions"
        kind = self.kind(layer)
        # a batch of single tokens: one long text must not be longer than the tables are
        inputs = [
            g.add("Unsqueeze", [x_RD, g.integers(1)]),
            g.weight(COSINES.format(kind)),
            g.weight(SINES.format(kind)),
            g.add("Unsqueeze", [positions_R, g.integers(1)]),
        ]
        turned = g.add("RotaryEmbedding", inputs, num_heads=g.config.num_heads)
        return g.add("Squeeze", [turned, g.integers(1)])

    def _mask(self, askers: Askers, kind: str) -> str:
        """(B, 1 or H, W or Q, W): what is added to scores, made once for all layers."""
        if (askers, kind) not in self._masks:
            self._masks[askers, kind] = self._made(askers, kind)
        return self._masks[askers, kind]

    def _made(self, askers: Askers, kind: str) -> str:
        g = self._g
        seen = g.add("Equal", [_rows(g, askers.texts), _columns(g, "slot_texts")])
        if kind == WINDOW:
            window = g.integers(g.config.local_window)
            distance = g.add("Abs", [self._distance(askers)])
            seen = g.add("And", [seen, g.add("LessOrEqual", [distance, window])])
        # finite, so that an unused query gives numbers, which nothing reads
        mask = g.add("Where", [seen, g.scalar("zero", 0), g.scalar("never", NEVER)])
        if not g.config.relative_buckets:
            return mask
        middle = len(g.weights[BIAS_BY_DISTANCE]) // 2
        distance = g.add("Squeeze", [self._distance(askers), g.integers(1)])
        index = g.add("Add", [distance, g.integers(middle)])
        bias = g.add("Gather", [g.weight(BIAS_BY_DISTANCE), index])
        return g.add("Add", [g.add("Transpose", [bias], perm=[0, 3, 1, 2]), mask])

    def _distance(self, askers: Askers) -> str:
        """(B, 1, W or Q, W): how many tokens after the asking one each slot stands."""
        g = self._g
        slots, asking = _columns(g, self._slot_positions()), _rows(g, askers.positions)
        return g.add("Sub", [slots, asking])

    def _slot_positions(self) -> str:
        if not self._needs_positions():
            return ""
        if self._by_slot is None:
            self._by_slot = self._g.add("Gather", ["positions", "pad_index"])
        return self._by_slot

    def _needs_positions(self) -> bool:
        return bool(self._g.config.local_layers or self._g.config.relative_buckets)


def _rows(g: GraphBuilder, x_BQ: str) -> str:
    """(B, 1, Q, 1)."""
    return g.add("Unsqueeze", [x_BQ, g.integers(1, 3)])


def _columns(g: GraphBuilder, x_BW: str) -> str:
    """(B, 1, 1, W)."""
    return g.add("Unsqueeze", [x_BW, g.integers(1, 2)])

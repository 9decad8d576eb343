"""Attention in the served graph: what each slot sees, and from where.

Shapes: R tokens end to end, B rows of W slots, Q most masks of a row, S = B * Q, P positions,
D d_model, d width of a head, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto, helper

from export.operators import GraphBuilder, float_tensor
from export.weights import BIAS_BY_DISTANCE, COSINES, SINES, WINDOW, seen_by
from service.engine.packing import ALIGNMENT

NEVER = -1e30  # added to a score, it leaves a weight of exactly 0
# Of encoders that read more tokens than this, slots ask a few at a time: the scores of all of them
# at once would take 3 GB for 12 heads and 8,192 tokens.
LONG_TOKENS = 1024
ASKING_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Slots:
    """Some slots of each row.

    Attributes:
        texts: (B, n) the text of each.
        positions: (B, n) its position in it; empty where no layer asks for it.
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
        self._needs_positions = bool(g.config.local_layers or g.config.relative_buckets)
        self._all = Slots("slot_texts", self._positions("pad_index"))
        self._masks: dict[tuple[Slots, str], str] = {}

    def masks(self) -> Slots:
        """The slots of masks, as those that ask."""
        return Slots("query_texts", self._positions("query_index"))

    def all_ask(self, query_BWD: str, key_BWD: str, value_BWD: str, layer: int) -> str:
        """Attention of every slot over the slots that it sees: (B, W, D)."""
        if self._g.longest > LONG_TOKENS:
            return self._in_rounds(query_BWD, key_BWD, value_BWD, layer)
        return self.some_ask(query_BWD, key_BWD, value_BWD, self._all, layer)

    def some_ask(self, query: str, key_BWD: str, value_BWD: str, asking: Slots, layer: int) -> str:
        """Attention of some slots' queries (B, Q, D) over all slots that they see."""
        kind = seen_by(self._g.config, layer)
        if (asking, kind) not in self._masks:
            self._masks[asking, kind] = self._mask(asking, self._all, kind)
        return self._attention(query, key_BWD, value_BWD, self._masks[asking, kind])

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
        kind = seen_by(self._g.config, layer)
        # a batch of single tokens: one long text must not be longer than the tables are
        inputs = [
            g.add("Unsqueeze", [x_RD, g.integers(1)]),
            g.weight(COSINES.format(kind)),
            g.weight(SINES.format(kind)),
            g.add("Unsqueeze", [positions_R, g.integers(1)]),
        ]
        turned = g.add("RotaryEmbedding", inputs, num_heads=g.config.num_heads)
        return g.add("Squeeze", [turned, g.integers(1)])

    def _in_rounds(self, query_BWD: str, key_BWD: str, value_BWD: str, layer: int) -> str:
        """The same, some slots at a time; where they see a window, over that part of the rows."""
        g, kind = self._g, seen_by(self._g.config, layer)
        at_once = g.integers(ASKING_AT_ONCE)
        width = g.add("Shape", ["slot_texts"], start=1)
        rounds = g.add("Div", [g.add("Add", [width, g.integers(ASKING_AT_ONCE - 1)]), at_once])
        rounds = g.add("Reshape", [rounds, g.integers()])
        nothing = g.add("Slice", [query_BWD, g.integers(0), g.integers(0), g.integers(1)])
        number = g.next_number()
        inputs = [
            helper.make_tensor_value_info(f"round_{number}", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"go_on_{number}", TensorProto.BOOL, []),
            float_tensor(f"before_{number}", None, None, None),
        ]
        outputs = [
            helper.make_tensor_value_info(f"go_on_after_{number}", TensorProto.BOOL, []),
            float_tensor(f"after_{number}", None, None, None),
        ]
        with g.subgraph(inputs, outputs) as body:
            g.add("Identity", [inputs[1].name], [outputs[0].name])
            round_1 = g.add("Reshape", [inputs[0].name, g.integers(-1)])
            start = g.add("Mul", [round_1, at_once])
            end = g.add("Add", [start, at_once])
            asking = self._part(self._all, start, end)
            seen, key, value = self._all, key_BWD, value_BWD
            if kind == WINDOW:
                # slots beside a window begin and end where texts may
                reach = g.integers(-(-g.config.local_window // ALIGNMENT) * ALIGNMENT)
                first = g.add("Max", [g.add("Sub", [start, reach]), g.integers(0)])
                last = g.add("Add", [end, reach])
                seen = self._part(seen, first, last)
                key, value = (self._slice(x, first, last) for x in (key, value))
            mask = self._mask(asking, seen, kind)
            mixed = self._attention(self._slice(query_BWD, start, end), key, value, mask)
            g.add("Concat", [inputs[2].name, mixed], [outputs[1].name], axis=1)
        return g.add("Loop", [rounds, "", nothing], body=body)

    def _attention(self, query: str, key: str, value: str, mask: str) -> str:
        heads = self._g.config.num_heads
        inputs = [query, key, value, mask]
        return self._g.add("Attention", inputs, q_num_heads=heads, kv_num_heads=heads)

    def _mask(self, asking: Slots, seen: Slots, kind: str) -> str:
        """(B, 1 or H, asking, seen): what is added to scores."""
        g = self._g
        same = g.add("Equal", [_rows(g, asking.texts), _columns(g, seen.texts)])
        if kind == WINDOW:
            distance = g.add("Abs", [self._distance(asking, seen)])
            near = g.add("LessOrEqual", [distance, g.integers(g.config.local_window)])
            same = g.add("And", [same, near])
        # finite, so that an unused query gives numbers, which nothing reads
        mask = g.add("Where", [same, g.scalar("zero", 0), g.scalar("never", NEVER)])
        if not g.config.relative_buckets:
            return mask
        middle = len(g.weights[BIAS_BY_DISTANCE]) // 2
        distance = g.add("Squeeze", [self._distance(asking, seen), g.integers(1)])
        index = g.add("Add", [distance, g.integers(middle)])
        bias = g.add("Gather", [g.weight(BIAS_BY_DISTANCE), index])
        return g.add("Add", [g.add("Transpose", [bias], perm=[0, 3, 1, 2]), mask])

    def _distance(self, asking: Slots, seen: Slots) -> str:
        """(B, 1, asking, seen): how many tokens after the asking one each slot stands."""
        g = self._g
        return g.add("Sub", [_columns(g, seen.positions), _rows(g, asking.positions)])

    def _part(self, slots: Slots, start: str, end: str) -> Slots:
        texts = self._slice(slots.texts, start, end)
        return Slots(texts, self._slice(slots.positions, start, end) if slots.positions else "")

    def _slice(self, x: str, start: str, end: str) -> str:
        return self._g.add("Slice", [x, start, end, self._g.integers(1)])

    def _positions(self, tokens: str) -> str:
        return self._g.add("Gather", ["positions", tokens]) if self._needs_positions else ""


def _rows(g: GraphBuilder, x_BQ: str) -> str:
    """(B, 1, Q, 1)."""
    return g.add("Unsqueeze", [x_BQ, g.integers(1, 3)])


def _columns(g: GraphBuilder, x_BW: str) -> str:
    """(B, 1, 1, W)."""
    return g.add("Unsqueeze", [x_BW, g.integers(1, 2)])

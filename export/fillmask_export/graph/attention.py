"""Attention in the served graph over packed rows, full or local, with rotary embeddings.

Shapes: R tokens of all texts, B rows of W slots, Q maximum tokens per row that a head reads,
D d_model, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from fillmask.engine.batch_arrays import ALIGNMENT
from fillmask_export.graph.nodes import float_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.weights import BIAS_BY_DISTANCE, COSINES, SINES, WINDOW, attention_range

NEVER = -1e30  # added to a score, this penalty makes the attention weight exactly 0
# Encoders with longer inputs compute attention for chunks of queries, because the scores of all
# queries together take 3 GB for 12 heads and 8,192 tokens.
LONG_TOKENS = 1024
CHUNK_SLOTS = 256


@dataclass(frozen=True, slots=True)
class Slots:
    """Names of tensors that describe n slots of each row.

    Attributes:
        texts: (B, n) index of each slot's text.
        positions: (B, n) position of each slot in its text, or "" if no layer needs positions.
    """

    texts: str
    positions: str


class Attention:
    """Builder of attention layers.

    Layers with the same queries and the same attention range share an attention mask.

    Args:
        g: graph builder with the inputs of `fillmask_export.graph.served`.
    """

    def __init__(self, g: GraphBuilder) -> None:
        self._g = g
        self._needs_positions = bool(g.config.local_layers or g.config.relative_buckets)
        self._all = Slots("slot_texts", self._positions("pad_index"))
        self._masks: dict[tuple[Slots, str], str] = {}

    def mask_slots(self) -> Slots:
        """Return the slots that a head reads, which are the queries of the last block."""
        return Slots("query_texts", self._positions("query_index"))

    def attend_all(self, query_BWD: str, key_BWD: str, value_BWD: str, layer: int) -> str:
        """Add attention with the queries of all slots. The output has the shape (B, W, D)."""
        if self._g.max_tokens > LONG_TOKENS:
            return self._attend_in_chunks(query_BWD, key_BWD, value_BWD, layer)
        return self.attend_from(query_BWD, key_BWD, value_BWD, self._all, layer)

    def attend_from(
        self, query: str, key_BWD: str, value_BWD: str, queries: Slots, layer: int
    ) -> str:
        """Add attention from the queries (B, Q, D) of some slots to all keys."""
        kind = attention_range(self._g.config, layer)
        if (queries, kind) not in self._masks:
            self._masks[queries, kind] = self._mask(queries, self._all, kind)
        return self._attention(query, key_BWD, value_BWD, self._masks[queries, kind])

    def normed(self, x_RD: str, name: str) -> str:
        return self._g.norm(x_RD, f"{name}_norm") if self._g.config.query_key_norm else x_RD

    def rotated(self, x_RD: str, layer: int, tokens: str = "") -> str:
        """Apply the encoder's rotary position embeddings, if any.

        Args:
            x_RD: queries or keys of all or some tokens.
            tokens: tensor with the indices of the tokens, or "" for all tokens.
        """
        g = self._g
        if g.config.rotary_base is None:
            return x_RD
        positions_R = g.add("Gather", ["positions", tokens]) if tokens else "positions"
        kind = attention_range(self._g.config, layer)
        # treat each token as a text, because one text of all tokens may be longer than the tables
        inputs = [
            g.add("Unsqueeze", [x_RD, g.integers(1)]),
            g.weight(COSINES.format(kind)),
            g.weight(SINES.format(kind)),
            g.add("Unsqueeze", [positions_R, g.integers(1)]),
        ]
        rotated = g.add("RotaryEmbedding", inputs, num_heads=g.config.num_heads)
        return g.add("Squeeze", [rotated, g.integers(1)])

    def _attend_in_chunks(self, query_BWD: str, key_BWD: str, value_BWD: str, layer: int) -> str:
        """Add attention in chunks of CHUNK_SLOTS queries over the keys in their range."""
        g, kind = self._g, attention_range(self._g.config, layer)
        at_once = g.integers(CHUNK_SLOTS)
        width = g.add("Shape", ["slot_texts"], start=1)
        rounds = g.add("Div", [g.add("Add", [width, g.integers(CHUNK_SLOTS - 1)]), at_once])
        rounds = g.add("Reshape", [rounds, g.integers()])
        nothing = g.add("Slice", [query_BWD, g.integers(0), g.integers(0), g.integers(1)])
        label = f"_{g.next_number()}"
        before, after = (
            float_tensor(f"{name}{label}", None, None, None) for name in ("before", "after")
        )
        with g.loop("round", "go_on", [before], [after], label) as body:
            round_1 = g.add("Reshape", [f"round{label}", g.integers(-1)])
            start = g.add("Mul", [round_1, at_once])
            end = g.add("Add", [start, at_once])
            queries = self._part(self._all, start, end)
            keys, key, value = self._all, key_BWD, value_BWD
            if kind == WINDOW:
                # round the window up, because texts start at multiples of ALIGNMENT slots
                reach = g.integers(-(-g.config.local_window // ALIGNMENT) * ALIGNMENT)
                first = g.add("Max", [g.add("Sub", [start, reach]), g.integers(0)])
                last = g.add("Add", [end, reach])
                keys = self._part(keys, first, last)
                key, value = (self._slice(x, first, last) for x in (key, value))
            mask = self._mask(queries, keys, kind)
            mixed = self._attention(self._slice(query_BWD, start, end), key, value, mask)
            g.add("Concat", [before.name, mixed], [after.name], axis=1)
        return g.add("Loop", [rounds, "", nothing], body=body)

    def _attention(self, query: str, key: str, value: str, mask: str) -> str:
        heads = self._g.config.num_heads
        inputs = [query, key, value, mask]
        return self._g.add("Attention", inputs, q_num_heads=heads, kv_num_heads=heads)

    def _mask(self, queries: Slots, keys: Slots, kind: str) -> str:
        """Build the score bias of shape (B, 1 or H, queries, keys)."""
        g = self._g
        same = g.add("Equal", [_rows(g, queries.texts), _columns(g, keys.texts)])
        if kind == WINDOW:
            distance = g.add("Abs", [self._distance(queries, keys)])
            near = g.add("LessOrEqual", [distance, g.integers(g.config.local_window)])
            same = g.add("And", [same, near])
        # finite, so that unused queries give finite numbers, which no node reads
        mask = g.add("Where", [same, g.scalar("zero", 0), g.scalar("never", NEVER)])
        if not g.config.relative_buckets:
            return mask
        middle = len(g.weights[BIAS_BY_DISTANCE]) // 2
        distance = g.add("Squeeze", [self._distance(queries, keys), g.integers(1)])
        index = g.add("Add", [distance, g.integers(middle)])
        bias = g.add("Gather", [g.weight(BIAS_BY_DISTANCE), index])
        return g.add("Add", [g.add("Transpose", [bias], perm=[0, 3, 1, 2]), mask])

    def _distance(self, queries: Slots, keys: Slots) -> str:
        """Compute the key position minus the query position as (B, 1, queries, keys)."""
        g = self._g
        return g.add("Sub", [_columns(g, keys.positions), _rows(g, queries.positions)])

    def _part(self, slots: Slots, start: str, end: str) -> Slots:
        texts = self._slice(slots.texts, start, end)
        return Slots(texts, self._slice(slots.positions, start, end) if slots.positions else "")

    def _slice(self, x: str, start: str, end: str) -> str:
        return self._g.add("Slice", [x, start, end, self._g.integers(1)])

    def _positions(self, tokens: str) -> str:
        return self._g.add("Gather", ["positions", tokens]) if self._needs_positions else ""


def _rows(g: GraphBuilder, x_BQ: str) -> str:
    """Reshape to (B, 1, Q, 1)."""
    return g.add("Unsqueeze", [x_BQ, g.integers(1, 3)])


def _columns(g: GraphBuilder, x_BW: str) -> str:
    """Reshape to (B, 1, 1, W)."""
    return g.add("Unsqueeze", [x_BW, g.integers(1, 2)])

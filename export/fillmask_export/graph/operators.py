"""Builder of an encoder's graph, with a method per kind of layer.

Methods take and return names of tensors, so that code for a graph resembles the encoder's code.

Shapes: R rows of a layer's input, P positions, E width of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fillmask_export.graph.nodes import NodeBuilder
from fillmask_export.graph.weight_file import WeightFile
from fillmask_export.graph.weights import COSINES, EVERYTHING, POSITIONS
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.embeddings import UNMASKED_IN_TRAINING
from fillmask_model.encoder.encoder import TABLE, output_table

PART_ROWS = 65_536  # maximum rows per part of the vocabulary


class GraphBuilder(NodeBuilder):
    """Builder of a float32 graph.

    Args:
        weights: float32 tensors of the encoder by name.
        file: file for initializers. Without a file, the graph contains the initializers.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: dict[str, NDArray[np.float32]],
        file: WeightFile | None = None,
    ) -> None:
        super().__init__(file)
        self.config = config
        self.weights = weights

    def bias(self, name: str) -> NDArray[np.float32] | None:
        """Return a bias vector of the encoder.

        Returns:
            The bias (out,), or None for a layer without a bias.
        """
        return self.weights.get(name)

    def folded_bias(self, name: str) -> NDArray[np.float32] | None:
        """Return the bias of a linear layer in the served graph.

        Softmax cancels the key bias, unless keys have rotary embeddings or a norm. Attention does
        not change the value bias, because attention weights sum to 1. The bias of attention's
        output layer contains the value bias instead.
        """
        turned = self.config.rotary_base is not None or self.config.query_key_norm
        dropped = (".value",) if turned else (".key", ".value")
        if name.endswith(dropped):
            return None
        bias = self.bias(f"{name}.bias")
        if bias is None or not name.endswith(".output"):
            return bias
        value_bias = self.weights[f"{name.removesuffix('.output')}.value.bias"]
        folded = self.weights[f"{name}.weight"].astype(np.float64) @ value_bias
        return (bias + folded).astype(np.float32)

    def lookup(self, ids: str) -> str:
        return self.add("Gather", [self.weight(TABLE), ids])

    def token_dropout(self, x: str, ids: str, unmasked: str) -> str:
        """Set the embeddings of masks to zero and rescale all other embeddings.

        `fillmask_model.encoder.embeddings` explains the scale.

        Args:
            x: (..., E) word embeddings.
            ids: (...) token ids.
            unmasked: (..., 1) share of unmasked tokens in each token's text.
        """
        masked = self.add("Unsqueeze", [self.is_mask(ids), self.integers(-1)])
        seen = self.scalar("seen_in_training", UNMASKED_IN_TRAINING)
        scaled_up = self.add("Div", [seen, unmasked])
        scales = self.add("Where", [masked, self.scalar("nothing", 0), scaled_up])
        return self.add("Mul", [x, scales])

    def is_mask(self, ids: str) -> str:
        mask = self.constant("mask_token", np.array(self.config.token_dropout_id, np.int64))
        return self.add("Equal", [ids, mask])

    def norm_and_project(self, x: str) -> str:
        """Normalise and project embeddings (..., E) to hidden states (..., D).

        The projection is always float32, because it is small and every layer depends on it.
        """
        if self.config.embedding_norm:
            x = self.norm(x, "embeddings.norm")
        if not self.config.embedding_size:
            return x
        name = "embeddings.projection"
        columns = self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T)
        product = self.add("MatMul", [x, columns])
        return self.add_bias(product, f"{name}.bias", self.bias(f"{name}.bias"))

    @property
    def vocabulary_parts(self) -> list[slice]:
        """Slices of the vocabulary for separate ranking."""
        rows = self.config.vocab_size
        return [slice(start, min(start + PART_ROWS, rows)) for start in range(0, rows, PART_ROWS)]

    def vocabulary(self, x: str, rows: str, part: slice) -> str:  # noqa: ARG002 - the int8 builder needs rows
        """Compute the logits of a part of the vocabulary.

        Args:
            x: outputs of the head.
            rows: tensor with the same first axis as x.
        """
        if len(self.vocabulary_parts) == 1:
            return self.table_logits(x)
        bias = self.bias("head_bias")
        part_bias = None if bias is None else bias[part]
        return self.gemm(x, self._table_rows(part), f"head_bias.{part.start}", part_bias)

    def columns(self, parts: Sequence[slice]) -> list[str]:
        """Return the table's parts for `column_products`, which a loop may contain."""
        return [self._table_rows(part) for part in parts]

    def column_products(self, x: str, rows: str, columns: Sequence[str]) -> list[str]:  # noqa: ARG002 - the int8 builder needs rows
        """Compute the logits of parts of the vocabulary without the head's bias.

        Args:
            x: outputs of the head.
            rows: tensor with the same first axis as x.
            columns: result of `columns`.
        """
        return [self.gemm(x, part, "", None) for part in columns]

    def _table_rows(self, part: slice) -> str:
        table = output_table(self.config)
        return self.constant_rows(table, self.weights[table], part)

    def table_logits(self, x: str, outputs: Sequence[str] = ()) -> str:
        """Compute the logits `x @ table.T` with the head's bias, if any."""
        table = self.weight(output_table(self.config))
        return self.gemm(x, table, "head_bias", self.bias("head_bias"), outputs)

    def linears(self, x: str, names: Sequence[str], rows: str) -> list[str]:  # noqa: ARG002 - the int8 builder needs rows
        """Add linear layers with the same input.

        Args:
            x: (R, in) input.
            rows: tensor whose first axis is R. Inputs with the same number of rows share this
                tensor.

        Returns:
            The name of an output (R, out) for each layer.
        """
        return [
            self.gemm(
                x,
                self.weight(f"{name}.weight"),
                f"{name}.bias",
                self.folded_bias(name),
            )
            for name in names
        ]

    def linear(self, x: str, name: str, rows: str) -> str:
        """Add one linear layer.

        `linears` explains `x` and `rows`.
        """
        return self.linears(x, [name], rows)[0]

    def feed_forward(self, x: str, name: str, rows: str) -> str:
        """Add the feed-forward network of a block.

        `linears` explains `x` and `rows`.
        """
        inner = self.activate(self.linear(x, f"{name}.ffn_in", rows), self.config.activation)
        if self.config.gated_ffn:
            inner = self.add("Mul", [inner, self.linear(x, f"{name}.ffn_gate", rows)])
        return self.linear(inner, f"{name}.ffn_out", rows)

    def head_transform(self, x: str, rows: str) -> str:
        """Add the dense layers and the norm of the masked-language-model head, if any.

        `linears` explains `x` and `rows`.
        """
        if not self.config.head_transform:
            return x
        for name in ["head.inner"] * bool(self.config.head_inner) + ["head.dense"]:
            x = self.activate(self.linear(x, name, rows), self.config.activation_of_head)
        return self.norm(x, "head.norm") if self.config.head_norm else x

    def after_attention(self, x: str, mixed: str, name: str, rows: str) -> str:
        """Add the rest of a block: attention's output layer and the feed-forward network.

        `linears` explains `rows`.

        Args:
            x: (R, D) input of the block.
            mixed: (R, D) values of the tokens, mixed by attention.
        """
        x = self.add("Add", [x, self.linear(mixed, f"{name}.output", rows)])
        if self.config.norm_placement == "pre":
            inner = self.feed_forward(self.norm(x, f"{name}.ffn_norm"), name, rows)
            return self.add("Add", [x, inner])
        x = self.norm(x, f"{name}.attention_norm")
        return self.norm(self.add("Add", [x, self.feed_forward(x, name, rows)]), f"{name}.ffn_norm")

    def gemm(
        self,
        x: str,
        weight: str,
        bias_name: str,
        bias: NDArray[np.float32] | None,
        outputs: Sequence[str] = (),
    ) -> str:
        """Compute `x @ weight.T` with the bias, if any."""
        inputs = [x, weight]
        if bias is not None and bias.any():
            inputs.append(self.constant(bias_name, bias))
        return self.add("Gemm", inputs, outputs, transB=1)

    def add_bias(self, x: str, name: str, bias: NDArray[np.float32] | None) -> str:
        if bias is None or not bias.any():
            return x
        return self.add("Add", [x, self.constant(name, bias)])

    def norm(self, x: str, name: str) -> str:
        """Add a norm over the last axis. RMSNormalization needs opset 23."""
        inputs = [x, self.norm_scale(name)]
        if self.config.norm_kind == "rms":
            return self.add("RMSNormalization", inputs, epsilon=self.config.norm_eps)
        bias = self.weights.get(f"{name}.bias")
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        return self.add("LayerNormalization", inputs, epsilon=self.config.norm_eps)

    def norm_scale(self, name: str) -> str:
        """Return the name of a norm's scale, which is 1 without affine parameters."""
        weight = self.weights.get(f"{name}.weight")
        if weight is None:
            return self.constant("ones.weight", np.ones(self.config.d_model, np.float32))
        return self.constant(f"{name}.weight", weight)

    def attention_input(self, x: str, name: str) -> str:
        """Compute the input of a block's attention, which a pre-norm encoder normalises."""
        unnormed = name == "blocks.0" and not self.config.first_attention_norm
        pre_norm = self.config.norm_placement == "pre" and not unnormed
        return self.norm(x, f"{name}.attention_norm") if pre_norm else x

    def activate(self, x: str, activation: str) -> str:
        """Add an activation. Gelu needs opset 20."""
        match activation:
            case "tanh" | "relu":
                return self.add(activation.capitalize(), [x])
            case "silu":
                return self.add("Mul", [x, self.add("Sigmoid", [x])])
        return self.add("Gelu", [x], approximate="tanh" if activation == "gelu_tanh" else "none")

    def position_table(self) -> str | None:
        """Return the name of the table (P, E) of position embeddings.

        Returns:
            The name, or None for an encoder without this table.
        """
        return self.weight(POSITIONS) if POSITIONS in self.weights else None

    @property
    def max_tokens(self) -> int:
        """Maximum length P of an input in tokens."""
        tables = (POSITIONS, COSINES.format(EVERYTHING))
        lengths = [len(self.weights[name]) for name in tables if name in self.weights]
        return lengths[0] if lengths else self.config.max_positions

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

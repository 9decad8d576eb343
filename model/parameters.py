"""How many parameters a configuration has, by part, and what tying saves (Press & Wolf 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from model.config import EncoderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Parameters by part.

    Attributes:
        word_embeddings: the table, V x D.
        other_embeddings: positions, token types and their norm.
        attention: all blocks' query, key, value and output projections.
        feed_forward: all blocks' feed-forward parts.
        norms: all blocks' norms and the final one.
        head_transform: BERT's step before the projection.
        head_bias: one bias per vocabulary entry.
        d_model: width of the hidden states.
    """

    word_embeddings: int
    other_embeddings: int
    attention: int
    feed_forward: int
    norms: int
    head_transform: int
    head_bias: int
    d_model: int

    @property
    def encoder(self) -> int:
        """Embeddings and blocks, without any head."""
        return (
            self.word_embeddings
            + self.other_embeddings
            + self.attention
            + self.feed_forward
            + self.norms
        )

    @property
    def tied(self) -> int:
        """The masked language model whose table is its output projection."""
        return self.encoder + self.head_transform + self.head_bias

    @property
    def untied(self) -> int:
        """The same with an output projection of its own."""
        return self.tied + self.word_embeddings

    @property
    def saved_share(self) -> float:
        """What tying saves, as a share of the tied model's size."""
        return self.word_embeddings / self.tied

    def classifier(self, num_classes: int) -> int:
        """The encoder under a linear classification head with biases."""
        return self.encoder + (self.d_model + 1) * num_classes

    def table(self) -> str:
        """A table for people."""
        lines = [
            ("word embeddings", self.word_embeddings),
            ("other embeddings", self.other_embeddings),
            ("attention", self.attention),
            ("feed-forward", self.feed_forward),
            ("norms", self.norms),
            ("head transform", self.head_transform),
            ("head bias", self.head_bias),
            ("tied model", self.tied),
            ("untied model", self.untied),
        ]
        rows = "\n".join(f"{name:<18}{count:>14,}" for name, count in lines)
        return (
            f"{rows}\ntying saves {self.word_embeddings:,} parameters, "
            f"{100 * self.saved_share:.1f} % of the tied model"
        )


def count_parameters(config: EncoderConfig) -> ParameterCount:
    """Count from the configuration alone; no weights are made."""
    D, d_ff, layers = config.d_model, config.d_ff, config.num_layers
    norm = 2 * D if config.norm_affine else 0
    projection = D * D + (D if config.attention_bias else 0)
    ffn_bias = {"none": 0, "input": d_ff, "both": d_ff + D}[config.ffn_bias]
    positions = config.max_positions * D if config.positions == "learned" else 0
    return ParameterCount(
        word_embeddings=config.vocab_size * D,
        other_embeddings=positions
        + config.type_vocab_size * D
        + (norm if config.embedding_norm else 0),
        attention=layers * 4 * projection,
        feed_forward=layers * (2 * D * d_ff + ffn_bias),
        norms=layers * 2 * norm + (norm if config.final_norm else 0),
        head_transform=(D * D + D + norm) if config.head_transform else 0,
        head_bias=config.vocab_size if config.head_bias else 0,
        d_model=D,
    )

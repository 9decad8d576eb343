"""Parameter counts of an encoder, with the share that tying saves (Press & Wolf 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Number of parameters by part.

    Attributes:
        word_embeddings: embedding table, V x E.
        other_embeddings: positions, token types, layer norm and projection of the embeddings.
        attention: projections of all blocks and the relative position bias.
        feed_forward: feed-forward networks of all blocks.
        norms: layer norms of all blocks and the final layer norm.
        head_transform: dense layer and layer norm before the output projection.
        head_bias: one bias per vocabulary entry.
        classification_head: dense layer, layer norm and output layer of the classification head.
    """

    word_embeddings: int
    other_embeddings: int
    attention: int
    feed_forward: int
    norms: int
    head_transform: int
    head_bias: int
    classification_head: int

    @property
    def encoder(self) -> int:
        """Number of parameters of embeddings and blocks, without a head."""
        return (
            self.word_embeddings
            + self.other_embeddings
            + self.attention
            + self.feed_forward
            + self.norms
        )

    @property
    def tied(self) -> int:
        """Number of parameters of the language model with a tied output projection."""
        return self.encoder + self.head_transform + self.head_bias

    @property
    def untied(self) -> int:
        """Number of parameters of the language model with a separate output projection."""
        return self.tied + self.word_embeddings

    @property
    def saved_share(self) -> float:
        """Number of parameters that tying saves, divided by the number in the tied model."""
        return self.word_embeddings / self.tied

    @property
    def classifier(self) -> int:
        """Number of parameters of the encoder with only the classification head."""
        return self.encoder + self.classification_head

    def table(self) -> str:
        """Format the counts as a text table."""
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
        if self.classification_head:
            lines += [
                ("classification head", self.classification_head),
                ("classifier", self.classifier),
            ]
        rows = "\n".join(f"{name:<19}{count:>14,}" for name, count in lines)
        return (
            f"{rows}\ntying saves {self.word_embeddings:,} parameters, "
            f"{100 * self.saved_share:.1f} % of the tied model"
        )


def count_parameters(
    config: EncoderConfig, classifier: ClassifierConfig | None = None
) -> ParameterCount:
    """Count parameters from a configuration, without creating weights.

    Args:
        classifier: configuration of the classification head. None for an encoder without labels.
    """
    D, E, d_ff, blocks = config.d_model, config.table_width, config.d_ff, config.num_blocks

    scales = int(config.norm_affine)
    shifts = scales * (config.norm_bias and config.norm_kind == "layer")

    def norm(width: int) -> int:
        return (scales + shifts) * width

    label_layers = 0
    if classifier is not None:
        label_layers = (D + 1) * len(classifier.labels) + (norm(D) if classifier.norm else 0)
        if classifier.activation is not None:
            label_layers += D * D + (D if classifier.dense_bias else 0)
    projection = D * D + (D if config.attention_bias else 0)
    inner_maps = 2 if config.gated_ffn else 1
    inner_bias = d_ff if config.ffn_in_bias else 0
    outer_bias = D if config.ffn_out_bias else 0
    head_layers = [(D, config.head_inner or E)] + (
        [(config.head_inner, E)] if config.head_inner else []
    )
    positions = config.max_positions * E if config.positions == "learned" else 0
    return ParameterCount(
        word_embeddings=config.vocab_size * E,
        other_embeddings=positions
        + config.type_vocab_size * E
        + (norm(E) if config.embedding_norm else 0)
        + ((E + 1) * D if config.embedding_size else 0),
        attention=blocks * 4 * projection + config.relative_buckets * config.num_heads,
        feed_forward=blocks * (inner_maps * (D * d_ff + inner_bias) + d_ff * D + outer_bias),
        norms=norm(D) * (2 * blocks - (not config.first_attention_norm) + config.final_norm)
        + (2 * blocks * scales * D if config.query_key_norm else 0),
        head_transform=sum((rows + config.head_dense_bias) * out for rows, out in head_layers)
        + (norm(E) if config.head_norm else 0)
        if config.head_transform
        else 0,
        head_bias=config.vocab_size if config.head_bias else 0,
        classification_head=label_layers,
    )

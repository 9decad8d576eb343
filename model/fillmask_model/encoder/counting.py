"""Parameter counts of an encoder, whose tied table counts once (Press & Wolf 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import empty_encoder
from fillmask_model.encoder.encoder import HEAD_PREFIXES, OUTPUT_TABLE


@dataclass(slots=True)
class ParameterCount:
    """Numbers of parameters by part.

    Attributes:
        encoder: embeddings and blocks.
        head: masked-language-model head without a table.
        labels: classification head.
    """

    encoder: int = 0
    head: int = 0
    labels: int = 0

    @property
    def tied(self) -> int:
        return self.encoder + self.head

    @property
    def classifier(self) -> int:
        """Number of parameters of the encoder with only the classification head."""
        return self.encoder + self.labels


def count_parameters(
    config: EncoderConfig, classifier: ClassifierConfig | None = None
) -> ParameterCount:
    """Count parameters from a configuration, without memory for weights.

    Args:
        classifier: configuration of the classification head. None for an encoder without labels.
    """
    count = ParameterCount()
    for name, parameter in empty_encoder(config, classifier).named_parameters():
        if name.startswith("classifier."):
            count.labels += parameter.numel()
        elif not name.startswith(HEAD_PREFIXES):
            count.encoder += parameter.numel()
        elif name != OUTPUT_TABLE:
            count.head += parameter.numel()
    return count

"""Parameter counts of an encoder, with the share that tying saves (Press & Wolf 2017)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import empty_encoder
from fillmask_model.encoder.encoder import OUTPUT_TABLE, TABLE

WORDS, BIAS, CLASSIFIER = "word embeddings", "head bias", "classification head"
ENCODER = (WORDS, "other embeddings", "attention", "feed-forward", "norms")


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Number of parameters by part, in the order of the model."""

    parts: Counter[str]

    @property
    def encoder(self) -> int:
        return sum(self.parts[name] for name in ENCODER)

    @property
    def tied(self) -> int:
        return self.encoder + self.parts["head transform"] + self.parts[BIAS]

    @property
    def untied(self) -> int:
        return self.tied + self.parts[WORDS]

    @property
    def classifier(self) -> int:
        """Number of parameters of the encoder with only the classification head."""
        return self.encoder + self.parts[CLASSIFIER]

    def table(self) -> str:
        lines = [(name, self.parts[name]) for name in (*ENCODER, "head transform", BIAS)]
        lines += [("tied model", self.tied), ("untied model", self.untied)]
        if self.parts[CLASSIFIER]:
            lines += [(CLASSIFIER, self.parts[CLASSIFIER]), ("classifier", self.classifier)]
        rows = "\n".join(f"{name:<19}{count:>14,}" for name, count in lines)
        words = self.parts[WORDS]
        return (
            f"{rows}\ntying saves {words:,} parameters, "
            f"{100 * words / self.tied:.1f} % of the tied model"
        )


def count_parameters(
    config: EncoderConfig, classifier: ClassifierConfig | None = None
) -> ParameterCount:
    """Count parameters from a configuration, without memory for weights.

    Args:
        classifier: configuration of the classification head. None for an encoder without labels.
    """
    parts: Counter[str] = Counter()
    for name, parameter in empty_encoder(config, classifier).named_parameters():
        if name != OUTPUT_TABLE:
            parts[_part(name)] += parameter.numel()
    return ParameterCount(parts)


def _part(name: str) -> str:
    if name == TABLE:
        return WORDS
    top = name.partition(".")[0]
    heads = {"embeddings": "other embeddings", "head": "head transform", "head_bias": BIAS}
    if top in heads or top == "classifier":
        return heads.get(top, CLASSIFIER)
    if "norm" in name:
        return "norms"
    return "feed-forward" if "ffn" in name else "attention"

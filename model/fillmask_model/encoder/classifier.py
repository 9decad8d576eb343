"""Classification head from the hidden states of a text to the logits of labels.

The head reads the hidden state of the first token (Devlin et al. 2019, section 3.2), the mean of
all hidden states, or each of them for labels of tokens (section 5.3). An optional dense layer,
activation and layer norm precede the output layer. With these options the head covers BERT's pooler
and the heads of the other families (`fillmask_model.checkpoints.families`).

Shapes: N batch, T tokens, D d_model, L labels.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from torch import Tensor, nn

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.layers import activate, norm

ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]
Pooling = Literal["first", "mean", "tokens"]
HeadActivation = Literal["tanh", "relu", "gelu_erf", "gelu_tanh", "silu"]

NEXT_SENTENCE_LABELS = ("is_next", "not_next")  # the order of BERT's logits


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierConfig:
    """Configuration of a classification head.

    The defaults describe BERT's pooler with a linear output layer (Devlin et al. 2019).

    Attributes:
        labels: name of each label, in the order of the logits.
        problem_type: "single_label_classification" for one label per text,
            "multi_label_classification" for any number of labels per text, or "regression" for
            numbers.
        pooling: "first" for the hidden state of the first token, "mean" for the mean over all
            tokens of the text, special tokens included, or "tokens" for labels of each token.
        pool_last: whether the pooling follows the activation instead of preceding the dense layer.
        activation: activation after the dense layer (D, D). None without a dense layer.
        dense_bias: whether the dense layer has a bias.
        norm: whether a layer norm follows the activation, as in ModernBERT.
    """

    labels: tuple[str, ...]
    problem_type: ProblemType = "single_label_classification"
    pooling: Pooling = "first"
    pool_last: bool = False
    activation: HeadActivation | None = "tanh"
    dense_bias: bool = True
    norm: bool = False

    def __post_init__(self) -> None:
        if not (
            isinstance(self.labels, tuple)
            and self.labels
            and all(isinstance(label, str) and label.strip() for label in self.labels)
        ):
            raise ValueError(f"labels must be a list of non-blank texts (got {self.labels!r})")
        if repeated := [one for one, count in Counter(self.labels).items() if count > 1]:
            raise ValueError(f"labels must differ from each other (got {min(repeated)!r} twice)")
        for name, allowed in (
            ("problem_type", get_args(ProblemType)),
            ("pooling", get_args(Pooling)),
            ("activation", (*get_args(HeadActivation), None)),
            ("pool_last", (True, False)),
            ("dense_bias", (True, False)),
            ("norm", (True, False)),
        ):
            value = getattr(self, name)
            # compare types too, because 1 equals True
            if not any(value == one and type(value) is type(one) for one in allowed):
                raise ValueError(
                    f"{name} must be one of {', '.join(map(str, allowed))} (got {value!r})"
                )
        if self.pool_last and self.pooling != "mean":
            raise ValueError(
                f'pool_last needs the pooling "mean" (got {self.pooling!r}); remove pool_last'
            )
        for name in ("norm", "pool_last"):
            if getattr(self, name) and self.activation is None:
                raise ValueError(
                    f"{name} needs a dense layer, which needs activation; set activation or remove "
                    f"{name}"
                )

    @classmethod
    def next_sentence(cls) -> Self:
        """Return the configuration of BERT's head for next-sentence prediction.

        Devlin et al. 2019, section 3.1, describe this task.
        """
        return cls(labels=NEXT_SENTENCE_LABELS)

    @classmethod
    def from_dict(cls, fields: object) -> Self:
        """Create a configuration from the fields that `to_dict` returns.

        Raises:
            ValueError: a field is unknown, missing or invalid.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or "labels" not in fields or set(fields) - known:
            raise ValueError(
                f"classifier must be an object with labels and optionally other fields among "
                f"{', '.join(sorted(known))} (got {fields!r})"
            )
        labels = fields["labels"]
        return cls(**(fields | {"labels": tuple(labels) if isinstance(labels, list) else labels}))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class ClassificationHead(nn.Module):
    """Head that maps the hidden states of texts to logits (N, L)."""

    def __init__(self, encoder: EncoderConfig, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        if config.activation is not None:
            self.dense = nn.Linear(encoder.d_model, encoder.d_model, bias=config.dense_bias)
        self.norm = norm(encoder, encoder.d_model) if config.norm else nn.Identity()
        self.output = nn.Linear(encoder.d_model, len(config.labels))

    def forward(self, hidden: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the logits (N, L), or (N, T, L) of each token with the pooling "tokens".

        Args:
            hidden: hidden states (N, D) of the first tokens, or (N, T, D) of all for the other
                poolings.
            attention_mask: (N, T), nonzero for real tokens. None without padding.
        """
        config = self.config
        if config.pooling == "mean" and not config.pool_last:
            hidden = mean_of_tokens(hidden, attention_mask)
        if config.activation is not None:
            hidden = activate(self.dense(hidden), config.activation)
        if config.pooling == "mean" and config.pool_last:
            hidden = mean_of_tokens(hidden, attention_mask)
        logits: Tensor = self.output(self.norm(hidden))
        return logits


def mean_of_tokens(hidden_NTD: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Return the mean hidden state (N, D) of the real tokens.

    Args:
        attention_mask: (N, T), nonzero for real tokens. None without padding.
    """
    if attention_mask is None:
        return hidden_NTD.mean(1)
    real_NT1 = (attention_mask != 0).to(hidden_NTD.dtype)[..., None]
    return (hidden_NTD * real_NT1).sum(1) / real_NT1.sum(1)

"""Fills of masks and errors of invalid texts and targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# value of `token` in a fill of several tokens, a number because clients expect a number
NO_SINGLE_TOKEN = -1


@dataclass(slots=True)  # not frozen, because a frozen fill takes three times as long to create
class Fill:
    """A fill of one mask.

    Attributes:
        score: probability over the whole vocabulary.
        token: the token's id.
        sequence: the client's text with this mask filled.
        window: start and end of the part of the text that the model reads, in characters. None
            means the whole text.
    """

    score: float
    token: int
    token_str: str
    sequence: str
    window: tuple[int, int] | None = None


@dataclass(slots=True, kw_only=True)
class TargetFill(Fill):
    """A target as the fill of one mask.

    Attributes:
        log_prob: log-probability of the whole target, in nats. Its exponential is the score.
        target_score: probability among the targets alone.
        tokens: ids of the target's tokens. With several tokens, `token` is -1.
    """

    log_prob: float
    target_score: float
    tokens: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class JointFill(Fill):
    """A joint fill of all masks of a text.

    Attributes:
        log_prob: joint log-probability, in nats. Its exponential is the score.
        tokens: id of each mask's token. With several masks, `token` is -1.
        token_strs: each mask's token as text. `token_str` joins these texts.
    """

    log_prob: float
    tokens: list[int]
    token_strs: list[str]


@dataclass(slots=True, kw_only=True)
class WordFill(Fill):
    """A word as the fill of one mask.

    Attributes:
        log_prob: log-probability of the whole word, in nats. Its exponential is the score.
        tokens: ids of the word's tokens. With several tokens, `token` is -1.
    """

    log_prob: float
    tokens: tuple[int, ...]


@dataclass(slots=True)
class RejectedText:
    """An invalid text, with the error message for the client."""

    error: str


@dataclass(slots=True)
class RejectedTarget:
    """An invalid target, with the error message for the client.

    Attributes:
        token_str: the target as the client wrote it.
    """

    token_str: str
    error: str


@dataclass(frozen=True, slots=True)
class FillResult:
    """Result of a fill-mask request.

    Attributes:
        fills: fills of each mask of each text, best first. The joint strategy returns one list per
            text. A rejected text has an empty list.
        is_large: true if serializing takes too long for the event loop.
        rejected_texts: rejected texts, by index.
        rejected_targets: rejected targets, by index of the text.
    """

    fills: Sequence[Sequence[Sequence[Fill]]]
    is_large: bool
    rejected_texts: Mapping[int, RejectedText] = field(default_factory=dict)
    rejected_targets: Mapping[int, Sequence[RejectedTarget]] = field(default_factory=dict)

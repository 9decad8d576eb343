"""Results of the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# `token` of a fill that has several tokens: clients that expect a number get one
NO_SINGLE_TOKEN = -1


@dataclass(slots=True)  # not frozen: a frozen one takes three times as long to create
class Fill:
    """One proposal for one mask.

    Attributes:
        score: probability over the whole vocabulary.
        token: the token's id.
        token_str: the token as text.
        sequence: the user's text with this mask filled.
        window: the part of the text that the model read, as the index of its first character and
            of the one after its last; None for the whole text.
    """

    score: float
    token: int
    token_str: str
    sequence: str
    window: tuple[int, int] | None = None


@dataclass(slots=True, kw_only=True)
class TargetFill(Fill):
    """One target for one mask.

    Attributes:
        log_prob: log-probability of the whole target, in nats; its exponential is the score.
        target_score: probability among the targets alone.
        tokens: ids of the target's tokens; `token` is -1 if there are several.
    """

    log_prob: float
    target_score: float
    tokens: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class JointFill(Fill):
    """One proposal for all masks of a text.

    Attributes:
        log_prob: joint log-probability, in nats; its exponential is the score.
        tokens: id of each mask's token; `token` is -1 if there are several masks.
        token_strs: each mask's token as text; `token_str` joins them.
    """

    log_prob: float
    tokens: list[int]
    token_strs: list[str]


@dataclass(slots=True, kw_only=True)
class WordFill(Fill):
    """One word for one mask.

    Attributes:
        log_prob: log-probability of the whole word, in nats; its exponential is the score.
        tokens: ids of the word's tokens; `token` is -1 if there are several.
    """

    log_prob: float
    tokens: tuple[int, ...]


@dataclass(slots=True)
class RejectedText:
    """An invalid text of a request whose other texts are processed.

    Attributes:
        error: one sentence for the client: what is wrong, where, and what is allowed.
    """

    error: str


@dataclass(slots=True)
class RejectedTarget:
    """An invalid target of a request whose other targets are ranked.

    Attributes:
        token_str: the target as the client wrote it.
        error: one sentence for the client.
    """

    token_str: str
    error: str


@dataclass(frozen=True, slots=True)
class FillResult:
    """Result of a fill-mask request.

    Attributes:
        fills: fills of each mask of each text, best first; one list per text for masks filled
            jointly; an empty list for a rejected text.
        is_large: a loop over the fills would stall the event loop.
        rejected_texts: by index of the text.
        rejected_targets: by index of the text that the targets were not ranked for.
    """

    fills: Sequence[Sequence[Sequence[Fill]]]
    is_large: bool
    rejected_texts: Mapping[int, RejectedText] = field(default_factory=dict)
    rejected_targets: Mapping[int, Sequence[RejectedTarget]] = field(default_factory=dict)

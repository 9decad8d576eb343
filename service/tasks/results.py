"""Results of tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

NO_SINGLE_TOKEN = -1  # what clients that want a number get as the token of several


@dataclass(slots=True)  # not frozen: that would make each cost three times as much to create
class Fill:
    """One proposal for one mask.

    Attributes:
        score: probability over the whole vocabulary.
        token: its id.
        token_str: the token as text.
        sequence: the user's text with this mask filled.
        window: the part of the text that the model saw, first character and the one after the
            last; None for all of it.
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
        log_prob: of the target as a whole, in nats; its exponential is the score.
        target_score: probability among the targets alone.
        tokens: the target's; `token` is that of a single one, and -1 where there are several.
    """

    log_prob: float
    target_score: float
    tokens: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class JointFill(Fill):
    """One proposal for all masks of a text.

    Attributes:
        log_prob: joint, in nats; its exponential is the score.
        tokens: of each mask its token; `token` is that of a single mask, and -1 for several.
        token_strs: the same as text; `token_str` is all of them.
    """

    log_prob: float
    tokens: list[int]
    token_strs: list[str]


@dataclass(slots=True, kw_only=True)
class WordFill(Fill):
    """One word for one mask.

    Attributes:
        log_prob: of the word as a whole, in nats; its exponential is the score.
        tokens: the word's; `token` is that of a single one, and -1 where there are several.
    """

    log_prob: float
    tokens: tuple[int, ...]


@dataclass(slots=True)
class RejectedText:
    """A text that is not answered; the others are.

    Attributes:
        error: one sentence for the caller: what, where, what is allowed.
    """

    error: str


@dataclass(slots=True)
class RejectedTarget:
    """A target that is not ranked; the others are.

    Attributes:
        token_str: as it was written.
        error: one sentence for the caller.
    """

    token_str: str
    error: str


@dataclass(frozen=True, slots=True)
class FillResult:
    """What a request is answered with.

    Attributes:
        fills: for each text, for each mask, best first; of masks filled together one list a text;
            none for a text that is refused.
        long: to do something with each fill takes so long that it would stall the event loop.
        refused_texts: by their place among the texts.
        refused_targets: by the place of the text they were not ranked for.
    """

    fills: Sequence[Sequence[Sequence[Fill]]]
    long: bool
    refused_texts: Mapping[int, RejectedText] = field(default_factory=dict)
    refused_targets: Mapping[int, Sequence[RejectedTarget]] = field(default_factory=dict)

"""What is left out of an answer, and why, where the caller has asked to be told so."""

from dataclasses import dataclass


@dataclass(slots=True)
class RefusedText:
    """A text that is not answered; the others are.

    Attributes:
        error: one sentence for the caller: what, where, what is allowed.
    """

    error: str


@dataclass(slots=True)
class RefusedTarget:
    """A target that is not ranked; the others are.

    Attributes:
        token_str: as it was written.
        error: one sentence for the caller.
    """

    token_str: str
    error: str

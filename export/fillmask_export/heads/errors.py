"""Errors of a verification."""

from __future__ import annotations

INT8_ADVICE = (
    "Export with --precision fp32, or calibrate with text that resembles the training text"
)


class VerificationError(ValueError):
    """Error for a graph whose verification failed."""


def require_int8(holds: bool, sentence: str) -> None:  # noqa: FBT001 - reads like assert
    """Refuse an int8 graph unless a condition holds. The condition must be false for NaN.

    Args:
        sentence: what the graph must have, and what it has, without a full stop.
    """
    if not holds:
        raise VerificationError(f"{sentence}. {INT8_ADVICE}")

"""How fast a worker has computed of late."""

# of what is known, so much is forgotten with each batch
_FORGOTTEN = 0.1


class Speed:
    """Tokens a second, over the batches of late: of all their tokens and all their time.

    The mean of the batches' own speeds would be that of the small ones, which are slow for their
    tokens, and say little of how long a long queue takes.
    """

    def __init__(self) -> None:
        self._tokens = 0.0
        self._seconds = 0.0

    def note(self, tokens: int, seconds: float) -> None:
        """One more batch."""
        self._tokens += tokens - _FORGOTTEN * self._tokens
        self._seconds += seconds - _FORGOTTEN * self._seconds

    @property
    def tokens_per_s(self) -> float | None:
        """None before the first batch."""
        return self._tokens / self._seconds if self._seconds else None

"""How fast a worker has computed of late."""

# of what is known, so much is forgotten with each batch
_FORGOTTEN = 0.1


class Speed:
    """Tokens a second, over the large batches of late: of all their tokens and all their time.

    A long queue is computed in large batches. Small ones are slow for their tokens, a third as fast
    where each is one short text, and say nothing of how long a long queue takes.

    Args:
        large_tokens: fewest of a batch that counts.
    """

    def __init__(self, large_tokens: int) -> None:
        self._large_tokens = large_tokens
        self._tokens = 0.0
        self._seconds = 0.0

    def note(self, tokens: int, seconds: float) -> None:
        """One more batch."""
        if tokens >= self._large_tokens:
            self._tokens += tokens - _FORGOTTEN * self._tokens
            self._seconds += seconds - _FORGOTTEN * self._seconds

    @property
    def tokens_per_s(self) -> float | None:
        """None before the first large batch."""
        return self._tokens / self._seconds if self._seconds else None

"""Targets: words and phrases to rank in place of a mask, each of one token or several."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.batch import IntArray
from service.errors import InvalidRequestError, quote
from service.refused import RefusedTarget
from service.tokenizer import Tokenizer

_NAMED_AT_MOST = 5  # of the targets that cannot be used


@dataclass(frozen=True, slots=True)
class Step:
    """Where targets of one length that begin alike go on.

    Attributes:
        length: tokens of the targets.
        prefix: those they have in common, all before the next.
        next_ids: (C,) what the next may be.
        members: (L,) the targets, by their place in the request.
        columns: (L,) of each its next token's place in next_ids.
    """

    length: int
    prefix: tuple[int, ...]
    next_ids: IntArray
    members: IntArray
    columns: IntArray


@dataclass(frozen=True)
class Targets:
    """The targets of a request.

    Attributes:
        texts: those that can be ranked, as they were written.
        token_ids: of each its tokens, at least one.
        refused: those that cannot.
    """

    texts: tuple[str, ...]
    token_ids: tuple[tuple[int, ...], ...]
    refused: tuple[RefusedTarget, ...]

    @classmethod
    def resolve(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> "Targets":
        """Find each target's tokens; one that has none, or those of another, is refused."""
        first: dict[tuple[int, ...], str] = {}
        refused: list[RefusedTarget] = []
        for text in texts:
            try:
                ids = tokenizer.target_ids(text)
            except InvalidRequestError as error:
                refused.append(RefusedTarget(text, error.text))
                continue
            if ids in first:
                reason = f"The targets {quote(first[ids])} and {quote(text)} are the same tokens."
                refused.append(RefusedTarget(text, reason))
            first.setdefault(ids, text)
        return cls(tuple(first.values()), tuple(first), tuple(refused))

    def check(self) -> None:
        """Take all of them or none.

        Raises:
            InvalidRequestError: some are refused; the text says which and why.
        """
        if self.refused:
            named = " ".join(target.error for target in self.refused[:_NAMED_AT_MOST])
            more = len(self.refused) - _NAMED_AT_MOST
            raise InvalidRequestError(f"{named} {more} more are wrong." if more > 0 else named)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def longest(self) -> int:
        """Tokens of the longest target."""
        return max(map(len, self.token_ids))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All of them; that of the targets of one token is the first, where there are any."""
        found: dict[tuple[int, tuple[int, ...]], dict[int, list[int]]] = {}
        for index, ids in sorted(enumerate(self.token_ids), key=lambda item: len(item[1])):
            for place, token_id in enumerate(ids):
                following = found.setdefault((len(ids), ids[:place]), {})
                following.setdefault(token_id, []).append(index)
        return tuple(
            Step(
                length,
                prefix,
                np.array(list(following), dtype=np.int64),
                np.array([index for indexes in following.values() for index in indexes]),
                np.repeat(np.arange(len(following)), [len(i) for i in following.values()]),
            )
            for (length, prefix), following in found.items()
        )

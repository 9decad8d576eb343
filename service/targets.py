"""Targets: words and phrases to rank in place of a mask, each of one token or several."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.batch import IntArray
from service.errors import InvalidRequestError, quote
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
        texts: as they were written.
        token_ids: of each its tokens, at least one.
    """

    texts: tuple[str, ...]
    token_ids: tuple[tuple[int, ...], ...]

    @classmethod
    def resolve(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> "Targets":
        """Find each target's tokens.

        Raises:
            InvalidRequestError: targets cannot be written with the vocabulary, or two are the
                same; the text says which and why.
        """
        token_ids: list[tuple[int, ...]] = []
        problems: list[str] = []
        first: dict[tuple[int, ...], str] = {}
        for text in texts:
            try:
                ids = tokenizer.target_ids(text)
            except InvalidRequestError as error:
                problems.append(error.text)
                continue
            if ids in first:
                problems.append(
                    f"The targets {quote(first[ids])} and {quote(text)} are the same tokens."
                )
            first.setdefault(ids, text)
            token_ids.append(ids)
        if problems:
            named = " ".join(problems[:_NAMED_AT_MOST])
            more = len(problems) - _NAMED_AT_MOST
            raise InvalidRequestError(f"{named} {more} more are wrong." if more > 0 else named)
        return cls(tuple(texts), tuple(token_ids))

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

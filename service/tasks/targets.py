"""Targets: words and phrases to rank in place of a mask, each of one token or several."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from pydantic_core import to_json

from service.arrays import IntArray
from service.errors import InvalidRequestError, quote
from service.tasks.results import RejectedTarget
from service.tokenization.tokenizer import Tokenizer

# 10,000 words of 26 letters; a longer list is rejected before it costs the time to tokenize it
MAX_TARGETS_BYTES = 2**18

_NAMED_AT_MOST = 5  # of the targets that cannot be used
_ID_BYTES = 40  # of a token's id in a tuple: the number and the reference to it
_STEP_BYTES = 700  # of a step beside the contents of its arrays
_JSON_ID_BYTES = 8  # of a token's id in JSON
_JSON_REFUSED_BYTES = 30  # of a target that cannot be used, beside its text and the reason
_REFUSED_BYTES = 400  # of a target that cannot be used beside its own text


@dataclass(frozen=True, slots=True)
class PrefixGroup:
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
        steps: the ways in which they go on; that of the targets of one token is the first, where
            there are any.
    """

    texts: tuple[str, ...]
    token_ids: tuple[tuple[int, ...], ...]
    refused: tuple[RejectedTarget, ...]
    steps: tuple[PrefixGroup, ...]

    @classmethod
    def resolve(cls, tokenizer: Tokenizer, texts: Sequence[str], max_passes: int) -> "Targets":
        """Find each target's tokens; one that has none, or those of another, is refused.

        Args:
            tokenizer: the model's.
            texts: the targets.
            max_passes: most passes of the model for one mask, each a step of targets of several
                tokens.

        Raises:
            InvalidRequestError: they take more passes; the targets that follow are not tokenized.
        """
        first: dict[tuple[int, ...], str] = {}
        refused: list[RejectedTarget] = []
        found: _Found = {}
        for text in texts:
            try:
                ids = tokenizer.encode_target(text)
            except InvalidRequestError as error:
                refused.append(RejectedTarget(text, error.text))
                continue
            if ids in first:
                reason = f"The targets {quote(first[ids])} and {quote(text)} are the same tokens."
                refused.append(RejectedTarget(text, reason))
                continue
            _add(found, ids, len(first))
            first[ids] = text
            if len(found) > max_passes + 1:  # the targets of one token take no pass for each mask
                raise InvalidRequestError(
                    f"The targets would take more than {max_passes} passes of the model for each "
                    f"mask; at most {max_passes} passes are allowed, so ask for fewer targets of "
                    "several tokens."
                )
        return cls(tuple(first.values()), tuple(first), tuple(refused), _steps(found))

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
    def wide(self) -> bool:
        """A fill with one of them takes four bytes for each of its characters in memory."""
        return any(max(text) > "\uffff" for text in self.texts)

    def json_bytes(self, wanted: int) -> int:
        """Return the most bytes that so many of them add to the JSON of a mask's fills."""
        return self._longest_json_bytes[wanted]

    @cached_property
    def _longest_json_bytes(self) -> list[int]:
        """Sums over the longest 0, 1, 2, ... targets; each is in the text and beside it."""
        sizes = [
            2 * len(to_json(text)) + _JSON_ID_BYTES * len(ids)
            for text, ids in zip(self.texts, self.token_ids, strict=True)
        ]
        return [0, *accumulate(sorted(sizes, reverse=True))]

    @cached_property
    def refused_json_bytes(self) -> int:
        """Bytes that the rejected ones add to the JSON of a mask's fills."""
        return sum(
            len(to_json(one.token_str)) + len(to_json(one.error)) + _JSON_REFUSED_BYTES
            for one in self.refused
        )

    @cached_property
    def size_bytes(self) -> int:
        """Memory that they take, about."""
        texts = sum(sys.getsizeof(text) for text in self.texts)
        ids = sum(sys.getsizeof(()) + _ID_BYTES * len(ids) for ids in self.token_ids)
        refused = sum(sys.getsizeof(one.token_str) + _REFUSED_BYTES for one in self.refused)
        steps = sum(
            _STEP_BYTES
            + _ID_BYTES * len(step.prefix)
            + sum(a.nbytes for a in (step.next_ids, step.members, step.columns))
            for step in self.steps
        )
        return texts + ids + refused + steps


# by length and prefix: the next tokens, and of each the targets that go on with it
_Found = dict[tuple[int, tuple[int, ...]], dict[int, list[int]]]


def check_size(lists: Iterable[Sequence[str]]) -> None:
    """Refuse more targets than can be of use, before any is tokenized.

    Args:
        lists: all that a request has.

    Raises:
        InvalidRequestError: they are longer than MAX_TARGETS_BYTES.
    """
    size_bytes = sum(len("".join(targets).encode()) for targets in lists)
    if size_bytes > MAX_TARGETS_BYTES:
        raise InvalidRequestError(
            f"The targets have {size_bytes} bytes in UTF-8; at most {MAX_TARGETS_BYTES} are "
            "allowed in a request."
        )


def _add(found: _Found, ids: tuple[int, ...], index: int) -> None:
    for place, token_id in enumerate(ids):
        following = found.setdefault((len(ids), ids[:place]), {})
        following.setdefault(token_id, []).append(index)


def _steps(found: _Found) -> tuple[PrefixGroup, ...]:
    return tuple(
        PrefixGroup(
            length,
            prefix,
            np.array(list(following), dtype=np.int64),
            np.array([index for indexes in following.values() for index in indexes]),
            np.repeat(np.arange(len(following)), [len(i) for i in following.values()]),
        )
        for (length, prefix), following in sorted(found.items(), key=lambda item: item[0][0])
    )

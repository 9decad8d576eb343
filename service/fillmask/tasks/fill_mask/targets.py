"""Targets, which are words and phrases to rank in place of a mask."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fillmask.arrays import IntArray
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.limits import told_passes
from fillmask.tasks.fill_mask.results import RejectedTarget
from fillmask.tokenization.tokenizer import Tokenizer

# the size of 10,000 words of 26 letters. Tokenizing larger lists takes too long.
MAX_TARGETS_BYTES = 2**18

_MAX_NAMED = 5  # maximum number of rejected targets that an error message names
_ID_BYTES = 40  # a token id in a tuple, with the number and its reference
_GROUP_BYTES = 700  # a prefix group without the contents of its arrays
_REJECTED_BYTES = 400  # a rejected target without its text


@dataclass(frozen=True, slots=True)
class PrefixGroup:
    """Targets of equal length that share their first tokens.

    Shapes: C distinct tokens after the prefix, L targets.

    Attributes:
        length: number of tokens of each target.
        prefix: ids of the shared tokens.
        next_ids: (C,) ids of the tokens that follow the prefix.
        members: (L,) indices of the targets.
        columns: (L,) index in next_ids of the token that follows the prefix in each target.
    """

    length: int
    prefix: tuple[int, ...]
    next_ids: IntArray
    members: IntArray
    columns: IntArray


@dataclass(frozen=True, eq=False)
class TargetTokens:
    """The tokens of targets, at masks after a space or at masks after none.

    Attributes:
        ids: ids of the tokens of each valid target.
        groups: prefix groups in order of length. The group of all one-token targets comes first.
    """

    ids: tuple[tuple[int, ...], ...]
    groups: tuple[PrefixGroup, ...]

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.ids))

    @cached_property
    def long_groups(self) -> int:
        """Number of groups of targets of several tokens, each of which takes a pass per mask."""
        return sum(group.length > 1 for group in self.groups)


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a request.

    Attributes:
        texts: valid targets, as the client wrote them.
        rejected: invalid targets.
        spaced: their tokens at a mask after a space.
        glued: their tokens at a mask without a space before it. The same object as `spaced` for a
            tokenizer whose tokens have no spaces.
    """

    texts: tuple[str, ...]
    rejected: tuple[RejectedTarget, ...]
    spaced: TargetTokens
    glued: TargetTokens

    @classmethod
    def resolve(cls, tokenizer: Tokenizer, texts: Sequence[str], max_passes: int) -> "Targets":
        """Tokenize the targets and reject empty and duplicate token sequences.

        Args:
            texts: the targets, as the client wrote them.
            max_passes: maximum number of model passes per mask. Each prefix group of targets with
                several tokens takes one pass.

        Raises:
            InvalidRequestError: the targets need more passes than `max_passes`. The method does
                not tokenize the remaining targets.
        """
        first: dict[tuple[int, ...], str] = {}
        rejected: list[RejectedTarget] = []
        found: _Found = {}
        for text in texts:
            try:
                ids = tokenizer.encode_target(text)
            except InvalidRequestError as error:
                rejected.append(RejectedTarget(text, error.text))
                continue
            if ids in first:
                error_text = (
                    f"The targets {quote(first[ids])} and {quote(text)} have the same tokens; "
                    "remove one of them."
                )
                rejected.append(RejectedTarget(text, error_text))
                continue
            _add(found, ids, len(first))
            first[ids] = text
            if len(found) > max_passes + 1:  # the group of one-token targets takes no pass per mask
                raise InvalidRequestError(
                    "The targets need more passes of the model per mask than the limit, "
                    f"{told_passes(max_passes)}; use fewer targets of several tokens."
                )
        spaced = glued = TargetTokens(tuple(first), _prefix_groups(found))
        if tokenizer.has_spaces_in_tokens:
            glued_ids = tuple(tokenizer.encode_target(text, glued=True) for text in first.values())
            found = {}
            for index, ids in enumerate(glued_ids):
                _add(found, ids, index)
            glued = TargetTokens(glued_ids, _prefix_groups(found))
        return cls(tuple(first.values()), tuple(rejected), spaced, glued)

    @property
    def forms(self) -> tuple[TargetTokens, ...]:
        """Their tokens in each form that differs."""
        return (self.spaced,) if self.glued is self.spaced else (self.spaced, self.glued)

    def tokens(self, *, glued: bool) -> TargetTokens:
        """Return the tokens of the targets at a mask with or without a space before it."""
        return self.glued if glued else self.spaced

    def check(self) -> None:
        """Raise an InvalidRequestError that describes up to five invalid targets, if any."""
        if self.rejected:
            named = " ".join(target.error for target in self.rejected[:_MAX_NAMED])
            count = len(self.rejected)
            if count > _MAX_NAMED:
                named = f"The request has {count} invalid targets. The first errors are: {named}"
            raise InvalidRequestError(named)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def longest(self) -> int:
        """Number of tokens of the longest target."""
        return max(self.spaced.longest, self.glued.longest)

    @cached_property
    def rejected_chars(self) -> int:
        """Characters of the rejected targets and their errors."""
        return sum(len(one.token_str) + len(one.error) for one in self.rejected)

    @cached_property
    def size_bytes(self) -> int:
        texts = sum(sys.getsizeof(text) for text in self.texts)
        ids = sum(sys.getsizeof(()) + _ID_BYTES * len(ids) for one in self.forms for ids in one.ids)
        rejected = sum(sys.getsizeof(one.token_str) + _REJECTED_BYTES for one in self.rejected)
        groups = sum(
            _GROUP_BYTES
            + _ID_BYTES * len(group.prefix)
            + sum(a.nbytes for a in (group.next_ids, group.members, group.columns))
            for one in self.forms
            for group in one.groups
        )
        return texts + ids + rejected + groups


# (length, prefix) -> next token -> indices of the targets that continue with it
_Found = dict[tuple[int, tuple[int, ...]], dict[int, list[int]]]


def check_targets_size(lists: Iterable[Sequence[str]]) -> None:
    """Raise an InvalidRequestError if the distinct lists of a request are too large to tokenize."""
    size_bytes = sum(len("".join(targets).encode()) for targets in lists)
    if size_bytes > MAX_TARGETS_BYTES:
        raise InvalidRequestError(
            f"The targets of a request must have at most {MAX_TARGETS_BYTES} bytes in UTF-8 "
            f"(got {size_bytes})."
        )


def _add(found: _Found, ids: tuple[int, ...], index: int) -> None:
    for place, token_id in enumerate(ids):
        following = found.setdefault((len(ids), ids[:place]), {})
        following.setdefault(token_id, []).append(index)


def _prefix_groups(found: _Found) -> tuple[PrefixGroup, ...]:
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

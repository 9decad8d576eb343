"""Agreement of a server's responses with transformers on the same weights."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CANDIDATES = 20  # number of best tokens per mask in the reference
TIE = 1e-3  # nats, for the order of float32 sums

# log-probabilities of the best tokens by id, for each mask of each text
Reference = list[list[dict[int, float]]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Number of masks with the reference's best token.

    A token that ties with the best token counts as the best token.

    Attributes:
        masks: number of all masks.
        same: number of masks with the best token.
    """

    masks: int
    same: int

    @property
    def share(self) -> float:
        """Share of masks with the best token, from 0 to 1."""
        return self.same / self.masks


def read_reference(path: Path) -> Reference:
    """Read a reference that `prepare` has written."""
    return [
        [{int(token): value for token, value in mask.items()} for mask in text]
        for text in json.loads(path.read_text())
    ]


def best_ordinary_tokens(answer: Any, special_token_ids: Collection[int]) -> list[int | None]:
    """Return the best token of each mask that is not a special token.

    Args:
        answer: response to one text in Hugging Face's format. Texts with several masks have a list
            of fills per mask.
        special_token_ids: ids that transformers returns but fillmask never does.

    Returns:
        Ids of the tokens. None for a mask with only special tokens.
    """
    masks = answer if isinstance(answer[0], list) else [answer]
    return [
        next((fill["token"] for fill in fills if fill["token"] not in special_token_ids), None)
        for fills in masks
    ]


def compare(reference: Reference, tokens: Sequence[Sequence[int | None]]) -> Agreement:
    """Count the masks with the reference's best token.

    Raises:
        ValueError: the response to a text has another number of masks.
    """
    same = 0
    for number, (expected, answered) in enumerate(zip(reference, tokens, strict=True)):
        if len(expected) != len(answered):
            raise ValueError(
                f"the response to text {number} must have {len(expected)} masks "
                f"(got {len(answered)})"
            )
        for candidates, token in zip(expected, answered, strict=True):
            best = max(candidates.values())
            same += token is not None and candidates.get(token, -1e30) >= best - TIE
    return Agreement(masks=sum(map(len, reference)), same=same)

"""Correctness before speed: what a server answers against transformers on the same weights."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# how many of the best tokens of a mask the reference keeps
CANDIDATES = 20
# log-probabilities as close as this are a tie: float32 sums differ by their order
TIE = 1e-3

# for each text, for each of its masks: the best tokens' log-probabilities by id
Reference = list[list[dict[int, float]]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Number of masks with the reference's best token, or one that ties with it."""

    masks: int
    same: int

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.same / self.masks


def read_reference(path: Path) -> Reference:
    """Read the file that `prepare` has written."""
    return [
        [{int(token): value for token, value in mask.items()} for mask in text]
        for text in json.loads(path.read_text())
    ]


def best_ordinary_tokens(answer: Any, special_token_ids: Collection[int]) -> list[int | None]:
    """The best token of each mask that is not special; None where all offered are.

    Args:
        answer: one text's answer in Hugging Face's format: a list of fills, or a list of those.
        special_token_ids: ids that ours never offers, and transformers does.
    """
    masks = answer if isinstance(answer[0], list) else [answer]
    return [
        next((fill["token"] for fill in fills if fill["token"] not in special_token_ids), None)
        for fills in masks
    ]


def compare(reference: Reference, tokens: Sequence[Sequence[int | None]]) -> Agreement:
    """Count the masks whose token is the reference's best, or ties with it.

    Raises:
        ValueError: a text was answered for another number of masks.
    """
    same = 0
    for number, (expected, answered) in enumerate(zip(reference, tokens, strict=True)):
        if len(expected) != len(answered):
            raise ValueError(f"text {number} has {len(expected)} masks and {len(answered)} answers")
        for candidates, token in zip(expected, answered, strict=True):
            best = max(candidates.values())
            same += token is not None and candidates.get(token, -1e30) >= best - TIE
    return Agreement(masks=sum(map(len, reference)), same=same)

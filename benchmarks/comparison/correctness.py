"""Agreement of a server's responses with transformers on the same weights."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

CANDIDATES = 20  # number of best tokens per mask in the reference
# tokens within this distance of the best token tie, in nats, because float32 sums are inexact
TIE = 1e-3

# log-probabilities of the best tokens by id, for each mask of each text
Reference = list[list[dict[int, float]]]


def read_reference(path: Path) -> Reference:
    """Read transformers' best tokens from a file that `prepare` has written."""
    return TypeAdapter(Reference).validate_json(path.read_bytes())


def best_ordinary_tokens(answer: Any, special_token_ids: Collection[int]) -> list[int | None]:
    """Return the best token of each mask, special tokens excluded.

    Args:
        answer: response to one text in Hugging Face's format. Texts with several masks have a list
            of fills per mask.
        special_token_ids: ids of the special tokens, which fillmask never returns.

    Returns:
        Id of the best token of each mask. None if all fills of a mask are special tokens.
    """
    masks = answer if isinstance(answer[0], list) else [answer]
    return [
        next((fill["token"] for fill in fills if fill["token"] not in special_token_ids), None)
        for fills in masks
    ]


def compare(reference: Reference, tokens: Sequence[Sequence[int | None]]) -> float:
    """Return the share of masks at which a server has the reference's best token, or one that ties.

    Raises:
        ValueError: a response and the reference have different numbers of masks.
    """
    same = [
        token is not None and candidates.get(token, -1e30) >= max(candidates.values()) - TIE
        for expected, answered in zip(reference, tokens, strict=True)
        for candidates, token in zip(expected, answered, strict=True)
    ]
    return sum(same) / len(same)

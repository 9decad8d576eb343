"""Entities in texts, and the labels of their tokens.

The first token of an entity has a label with B- and its other tokens one with I- (Ramshaw and
Marcus 1995). A token belongs to an entity if they share a character.

Shapes: N rows, T tokens.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fillmask_model.fine_tuning.tables import Dataset, Entity, Example
from fillmask_model.fine_tuning.tokens import LENGTH_MULTIPLE, TokenizedTexts

OUTSIDE = "O"  # label of a token in no entity
IGNORED = -100  # target of special tokens and padding, which the loss ignores


def parse_entities(value: object, column: str, text: str) -> tuple[Entity, ...]:
    """Check the entities of a text and return them in the order of the text."""
    if not isinstance(value, list):
        raise ValueError(f"{column} must be a list of objects, in JSONL (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
    entities = sorted(_parse(one, column, text) for one in value)
    for first, second in pairwise(entities):
        if second.start < first.end:
            spans = " and ".join(f"{x.label} from {x.start} to {x.end}" for x in (first, second))
            raise ValueError(f"{column} must not overlap (got {spans}); remove one of them")
    return tuple(entities)


def encode_entities(
    dataset: Dataset, texts: TokenizedTexts, labels: tuple[str, ...]
) -> NDArray[np.int32]:
    """Return the labels (N, T) of the tokens of texts, IGNORED for special tokens and padding."""
    assert texts.spans is not None  # noqa: S101 - the command asks for them
    numbers = {label: number for number, label in enumerate(labels)}
    width = -(-int(texts.lengths().max()) // LENGTH_MULTIPLE) * LENGTH_MULTIPLE
    targets = np.full((len(texts), width), IGNORED, np.int32)
    for row_T, example, spans_T2 in zip(targets, dataset.examples, texts.spans, strict=True):
        try:
            row_T[: len(spans_T2)] = _labels_of(example, spans_T2, numbers, texts.max_tokens)
        except ValueError as error:
            raise ValueError(f"{dataset.path}, row {example.row}: {error}") from None
    return targets


def entities_of(labels_T: NDArray[Any]) -> set[tuple[int, int, int]]:
    """Return the kind of each entity, from 0, with its first token and the token after it.

    An entity begins at a token with B-, or with I- after another kind or none.
    """
    kinds_T = (labels_T + 1) // 2 - 1  # -1 for O
    begins_T = (labels_T % 2 == 1) | (np.diff(kinds_T, prepend=-1) != 0)
    starts = begins_T.nonzero()[0].tolist()
    kinds, ends = kinds_T[starts].tolist(), [*starts[1:], len(labels_T)]
    return {one for one in zip(kinds, starts, ends, strict=False) if one[0] >= 0}


def _labels_of(
    example: Example, spans_T2: NDArray[np.int64], numbers: dict[str, int], max_tokens: int
) -> NDArray[np.int32]:
    starts_T, ends_T = spans_T2.T
    labels_T = np.where(ends_T < 0, IGNORED, numbers[OUTSIDE]).astype(np.int32)
    for start, end, label in example.entities:
        if f"B-{label}" not in numbers:
            raise ValueError(
                f"the training rows have no entity {label!r}; add training rows with this label or "
                "remove the row"
            )
        own = (starts_T < end) & (ends_T > start) & (labels_T == numbers[OUTSIDE])
        places = own.nonzero()[0]
        if len(places):
            labels_T[places] = numbers[f"I-{label}"]
            labels_T[places[0]] = numbers[f"B-{label}"]
        elif len(spans_T2) < max_tokens or start < ends_T.max():  # not cut off
            raise ValueError(
                f"the entity {label} from {start} to {end} has no token of its own; correct or "
                "remove it"
            )
    return labels_T


def _parse(value: object, column: str, text: str) -> Entity:
    if not isinstance(value, dict) or not {"start", "end", "label"} <= value.keys():
        raise ValueError(f"{column} must contain objects with start, end and label (got {value!r})")
    start, end, label = value["start"], value["end"], value["label"]
    whole = type(start) is type(end) is int
    if not (whole and 0 <= start < end <= len(text) and (span := text[start:end]).strip()):
        raise ValueError(
            "start and end must be whole numbers that enclose some of the text's "
            f"{len(text)} characters, not only white space (got {start!r} and {end!r})"
        )
    if not isinstance(label, str) or not label.strip() or label == OUTSIDE:
        raise ValueError(
            f"the label of an entity must be a text, not blank and not {OUTSIDE}, which stands for "
            f"no entity (got {label!r})"
        )
    # without the white space after it, which many tokenizers give to the next token
    return Entity(start, start + len(span.rstrip()), label)

"""Stratified split of a dataset, and rows with the same text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fillmask_model.fine_tuning.tables import Dataset, Example

VALIDATION_SHARE = 0.1
SPLIT_SEED = 20_181_011  # fixed, so that runs with different seeds have the same validation rows


def split_dataset(
    dataset: Dataset, validation_share: float = VALIDATION_SHARE
) -> tuple[Dataset, Dataset]:
    """Split a dataset with a fixed seed into training and validation rows.

    The validation rows contain about the given share of the rows of each label. The training rows
    contain at least one row of each label. Rows with the same text are in the same part.
    """
    strata = [example.labels or ("",) for example in dataset.examples]
    room = {
        label: min(count - 1, max(1, round(validation_share * count)))
        for label, count in Counter(label for labels in strata for label in labels).items()
    }
    groups: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for index, example in enumerate(dataset.examples):
        groups[example.texts].append(index)
    texts = list(groups.values())
    chosen: set[int] = set()
    for number in np.random.default_rng(SPLIT_SEED).permutation(len(texts)):
        needed = Counter(label for index in texts[number] for label in strata[index])
        if all(room[label] >= count for label, count in needed.items()):
            chosen.update(texts[number])
            for label, count in needed.items():
                room[label] -= count
    if not chosen:
        raise ValueError(
            f"{dataset.path} has too few rows for a validation share of {validation_share} "
            f"(got {len(dataset.examples)}); add rows or set --validation"
        )
    parts: tuple[list[Example], list[Example]] = ([], [])
    for index, example in enumerate(dataset.examples):
        parts[index in chosen].append(example)
    training, validation = (replace(dataset, examples=tuple(part)) for part in parts)
    return training, validation


def note_shared_texts(training: Dataset, other: Dataset, note: Callable[[str], None]) -> None:
    """Note how many rows have a text that also occurs in the training rows, if any."""
    known = {example.texts for example in training.examples}
    if shared := sum(example.texts in known for example in other.examples):
        note(f"rows of {other.path} with a text that the training rows also have: {shared:,}")

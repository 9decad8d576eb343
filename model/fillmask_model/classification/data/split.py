"""Stratified split of a dataset, with descriptions of repeated texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fillmask_model.fine_tuning.tables import Dataset, Example

SPLIT_SEED = 20_181_011  # fixed, so that runs with different seeds have the same validation rows
_UNLABELLED = ("",)


def split_dataset(dataset: Dataset, validation_share: float) -> tuple[Dataset, Dataset]:
    """Split a dataset with a fixed seed into training and validation rows.

    The split is stratified. The validation rows contain about the given share of the rows of each
    label. The training rows contain at least one row of each label. Rows with the same text are in
    the same part.

    Args:
        validation_share: share of the rows for validation, between 0 and 1.

    Raises:
        ValueError: validation_share is invalid, or the dataset is too small for a validation row.
    """
    if not 0 < validation_share < 1:
        raise ValueError(f"--validation-share must be above 0 and below 1 (got {validation_share})")
    counts = Counter(label for example in dataset.examples for label in _strata(example))
    room = {
        label: min(count - 1, max(1, round(validation_share * count)))
        for label, count in counts.items()
    }
    groups: dict[tuple[str, str | None], list[Example]] = defaultdict(list)
    for example in dataset.examples:
        groups[example.text, example.text_pair].append(example)
    texts = list(groups.values())
    chosen: set[int] = set()
    for index in np.random.default_rng(SPLIT_SEED).permutation(len(texts)):
        needed = Counter(label for example in texts[index] for label in _strata(example))
        if all(room[label] >= count for label, count in needed.items()):
            chosen |= {example.row for example in texts[index]}
            for label, count in needed.items():
                room[label] -= count
    if not chosen:
        raise ValueError(
            f"{dataset.path} has too few rows for a validation share of {validation_share} "
            f"(got {len(dataset.examples)}); add rows or set --validation"
        )
    training = tuple(e for e in dataset.examples if e.row not in chosen)
    validation = tuple(e for e in dataset.examples if e.row in chosen)
    return replace(dataset, examples=training), replace(dataset, examples=validation)


def describe_repeated_texts(dataset: Dataset) -> list[str]:
    """Describe in a note how many rows repeat the text of an earlier row.

    Returns:
        A list with the note, or an empty list without such rows.
    """
    seen: dict[tuple[str, str | None], Example] = {}
    repeated = contradicted = 0
    for example in dataset.examples:
        first = seen.setdefault((example.text, example.text_pair), example)
        if first is not example:
            repeated += 1
            same = sorted(first.labels) == sorted(example.labels) and first.value == example.value
            contradicted += not same
    if not repeated:
        return []
    rows = f"rows of {dataset.path} that repeat the text of an earlier row: {repeated:,}"
    return [f"{rows} (with another label: {contradicted:,})"]


def describe_shared_texts(training: Dataset, other: Dataset) -> list[str]:
    """Describe in a note how many rows have a text that also occurs in the training rows.

    Returns:
        A list with the note, or an empty list without such rows.
    """
    known = {(example.text, example.text_pair) for example in training.examples}
    shared = sum((example.text, example.text_pair) in known for example in other.examples)
    if not shared:
        return []
    return [f"rows of {other.path} with a text that the training rows also have: {shared:,}"]


def _strata(example: Example) -> Iterable[str]:
    return example.labels or _UNLABELLED

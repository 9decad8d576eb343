"""Batches of texts of equal length, which need no padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches_of_equal_length(
    texts: Iterable[T], length: Callable[[T], int], max_texts: Callable[[int], int]
) -> Iterator[list[T]]:
    """Yield batches of texts of equal length, because a few rows do not fill the CPU's vectors.

    Lengths follow each other in the order of their first texts.

    Args:
        texts: texts in any form.
        length: function that returns the length of a text.
        max_texts: function of a length that returns the maximum number of texts per batch, at
            least 1.
    """
    by_length: dict[int, list[T]] = {}
    for text in texts:
        by_length.setdefault(length(text), []).append(text)
    for tokens, same in by_length.items():
        count = max_texts(tokens)
        for start in range(0, len(same), count):
            yield same[start : start + count]

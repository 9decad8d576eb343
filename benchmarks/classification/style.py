"""Accuracy of a classifier that reads only the style of a paragraph, not its words.

A logistic regression reads the length of the paragraph in characters and words, the mean and the
standard deviation of the word lengths, and the counts of four punctuation marks. The difference
between its accuracy and chance measures how much the sources differ in style.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.classification.paragraphs import Example


def style_features(text: str) -> list[float]:
    """Return the length of a paragraph, statistics of its words and counts of punctuation marks."""
    lengths = [len(word) for word in text.split()]
    counts = [float(text.count(mark)) for mark in ".,'-"]
    return [len(text), len(lengths), float(np.mean(lengths)), float(np.std(lengths)), *counts]


def style_accuracy(training: Sequence[Example], test: Sequence[Example]) -> str:
    """Return a sentence with the accuracy on the test paragraphs."""
    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    classifier.fit(_features(training), [example.label for example in training])
    accuracy = classifier.score(_features(test), [example.label for example in test])
    return (
        "A logistic regression on lengths and counts of punctuation marks alone reaches an "
        f"accuracy of {accuracy:.3f}. Chance is {1 / len({e.label for e in test}):.3f}."
    )


def _features(examples: Sequence[Example]) -> NDArray[np.float64]:
    return np.array([style_features(example.text) for example in examples])

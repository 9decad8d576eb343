"""Baselines without an encoder: the majority class and a bag of words.

The bag of words is a logistic regression on TF-IDF features of words and of pairs of neighbouring
words. This model is a standard baseline of text classification. The module uses scikit-learn,
because readers of a comparison know its implementation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fillmask_model.fine_tuning.tables import Example

# Inverse strength of the L2 penalty. On 200, 1,000 and 5,000 paragraphs of seven sources, the
# accuracy was 0.63, 0.75 and 0.79 with the default of scikit-learn, 1. It was 0.67, 0.77 and 0.83
# with 10. With 100, it was at most 0.01 higher.
INVERSE_PENALTY = 10.0
MAX_ITERATIONS = 1000


def majority_accuracy(training: NDArray[np.int64], validation: NDArray[np.int64]) -> float:
    """Return the accuracy of the most frequent training label as prediction for every row."""
    return float(np.mean(validation == np.bincount(training).argmax()))


def bag_of_words_accuracy(
    training: list[Example],
    training_targets: NDArray[np.int64],
    validation: list[Example],
    validation_targets: NDArray[np.int64],
) -> float:
    """Return the accuracy of a logistic regression on TF-IDF features.

    The two texts of a pair count as one text.
    """
    # imported here, because the imports take a second
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    if len(np.unique(training_targets)) == 1:  # LogisticRegression needs two classes
        return majority_accuracy(training_targets, validation_targets)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    features = vectorizer.fit_transform([_whole_text(example) for example in training])
    classifier = LogisticRegression(C=INVERSE_PENALTY, max_iter=MAX_ITERATIONS)
    classifier.fit(features, training_targets)
    predicted = classifier.predict(vectorizer.transform([_whole_text(e) for e in validation]))
    return float(np.mean(predicted == validation_targets))


def _whole_text(example: Example) -> str:
    return example.text if example.text_pair is None else f"{example.text} {example.text_pair}"

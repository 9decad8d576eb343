from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.classification.bundle_accuracy import (
    BundleAccuracy,
    best_labels,
    evaluate_bundles,
    example_response,
)
from benchmarks.classification.paragraphs import Example
from benchmarks.classification.style import style_accuracy, style_features
from tests.model.samples import VERSES
from tests.service.api.labels.bundles import LABELS, write_label_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_label_bundle(tmp_path_factory.mktemp("accuracy") / "labels", fills=False)


def test_bundles_are_compared_with_the_labels_and_with_each_other(bundle: Path) -> None:
    # The texts need several requests and keep their order.
    texts = [VERSES[n % len(VERSES)] for n in range(60)]
    found = best_labels(bundle, [Example(text, "", "") for text in texts])
    assert found == [found[n % len(VERSES)] for n in range(60)]
    others = [next(name for name in LABELS if name != label) for label in found]
    labels = found[:45] + others[45:]
    examples = [Example(text, label, "") for text, label in zip(texts, labels, strict=True)]
    assert evaluate_bundles(bundle, bundle, examples) == BundleAccuracy(60, 45, 45, 60)


def test_response_has_rounded_scores(bundle: Path) -> None:
    [labels] = json.loads(example_response(bundle))
    assert len(labels) == 2
    assert labels[0]["score"] >= labels[1]["score"] == round(labels[1]["score"], 4)


def test_sentences_have_percentages_of_all_texts() -> None:
    first, second = BundleAccuracy(texts=1500, fp32=1350, int8=1347, same=1490).sentences()
    assert "90.0 % of the 1,500 test paragraphs correctly in fp32 and 89.8 % in int8" in first
    assert "for 99.3 % of them" in second


def test_style_ignores_words() -> None:
    assert style_features("One word, or two.") == style_features("Own lord, do mow.")
    short = [Example(f"To be {'so' * (n % 3)}.", "short", "") for n in range(30)]
    long = [Example(f"Unbelievably, {'very ' * n}long.", "long", "") for n in range(5, 35)]
    assert "accuracy of 1.000. Chance is 0.500" in style_accuracy(short + long, short + long)

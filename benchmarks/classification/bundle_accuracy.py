"""Accuracy of the exported classifier in fp32 and int8, over the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastapi.testclient import TestClient

from benchmarks.classification.paragraphs import Example
from fillmask.app import create_app
from fillmask.settings import Settings

TEXTS_PER_REQUEST = 50
# the request of docs/classification.md
EXAMPLE = {"inputs": "Your doctor may order a blood test.", "parameters": {"top_k": 2}}


@dataclass(frozen=True, slots=True)
class BundleAccuracy:
    """Accuracy of two bundles of one checkpoint on the same texts.

    Attributes:
        fp32: number of texts with the correct label in fp32.
        int8: number of texts with the correct label in int8.
        same: number of texts with the same best label in fp32 and int8.
    """

    texts: int
    fp32: int
    int8: int
    same: int

    def sentences(self) -> list[str]:
        """Return the figures as sentences."""
        fp32, int8, same = (100 * n / self.texts for n in (self.fp32, self.int8, self.same))
        correct = (
            f"The exported classifier labels {fp32:.1f} % of the {self.texts:,} test paragraphs "
            f"correctly in fp32 and {int8:.1f} % in int8."
        )
        agreement = f"In int8 and fp32 it has the same best label for {same:.1f} % of them."
        return [correct, agreement]


def evaluate_bundles(fp32: Path, int8: Path, examples: Sequence[Example]) -> BundleAccuracy:
    """Classify the texts with both bundles and count the correct and the equal labels."""
    correct = [example.label for example in examples]
    first, second = (best_labels(bundle, examples) for bundle in (fp32, int8))
    return BundleAccuracy(
        texts=len(examples),
        fp32=count_equal(correct, first),
        int8=count_equal(correct, second),
        same=count_equal(first, second),
    )


def best_labels(bundle: Path, examples: Sequence[Example]) -> list[str]:
    """Return the best label of each example's text."""
    labels = []
    with TestClient(create_app(Settings(bundle=bundle))) as client:
        for begin in range(0, len(examples), TEXTS_PER_REQUEST):
            part = examples[begin : begin + TEXTS_PER_REQUEST]
            body = {"inputs": [example.text for example in part], "parameters": {"top_k": 1}}
            response = client.post("/classify", json=body).raise_for_status()
            labels += [best["label"] for [best] in response.json()]
    return labels


def example_response(bundle: Path) -> str:
    """Return the response to EXAMPLE as JSON, with rounded scores."""
    with TestClient(create_app(Settings(bundle=bundle))) as client:
        [labels] = client.post("/classify", json=EXAMPLE).raise_for_status().json()
    return json.dumps([[one | {"score": round(one["score"], 4)} for one in labels]])


def count_equal(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the positions at which two sequences of labels agree."""
    return sum(one == other for one, other in zip(first, second, strict=True))

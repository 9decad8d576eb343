"""Fields of bundle.json for tasks, pairs, token types and labels."""

from collections.abc import Callable
from typing import Any

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.bundles.description import Classification
from fillmask.errors import BundleError
from tests.service.conftest import EditBundle

EXPORT_AGAIN = "; export the checkpoint with this release of fillmask"
BOTH = "fill-mask, text-classification"


def _with_labels(bundle: dict[str, Any]) -> None:
    """Turn the description of the tiny model into that of a model with both tasks and pairs."""
    bundle |= {
        "schema_version": 3,
        "tasks": ["fill-mask", "text-classification"],
        "pairs": True,
        "token_types": 2,
        "classification": {
            "labels": ["bad", "good"],
            "problem_type": "single_label_classification",
            "pooling": "first",
        },
    }
    bundle["golden"]["prompts"][0]["text_pair"] = "The dog barked."
    bundle["golden"] |= {
        "logit_tolerance": 0.002,
        "labels": [
            {"text": "The tea.", "logits": [0.5, -1.5]},
            {"text": "Tea.", "text_pair": "Water.", "logits": [2, 3.25]},
        ],
    }


def _labels_alone(bundle: dict[str, Any]) -> None:
    bundle["tasks"] = ["text-classification"]
    bundle["golden"]["prompts"] = []
    del bundle["golden"]["log_prob_tolerance"]


def test_reads_what_was_written(edit_bundle: EditBundle) -> None:
    bundle = read_bundle(edit_bundle(_with_labels))
    assert bundle.tasks == ("fill-mask", "text-classification")
    assert (bundle.pairs, bundle.token_types) == (True, 2)
    assert bundle.classification == Classification(
        labels=("bad", "good"), problem_type="single_label_classification", pooling="first"
    )
    first, second = bundle.golden.labels
    assert (first.text, first.text_pair, first.logits) == ("The tea.", None, (0.5, -1.5))
    assert (second.text, second.text_pair, second.logits) == ("Tea.", "Water.", (2, 3.25))
    assert bundle.golden.logit_tolerance == 0.002
    assert [one.text_pair for one in bundle.golden.prompts] == ["The dog barked.", None]


def test_reads_a_bundle_for_labels_alone(edit_bundle: EditBundle) -> None:
    def change(bundle: dict[str, Any]) -> None:
        _with_labels(bundle)
        _labels_alone(bundle)

    bundle = read_bundle(edit_bundle(change))
    assert bundle.tasks == ("text-classification",)
    assert (bundle.golden.prompts, bundle.golden.log_prob_tolerance) == ((), None)


def test_version_2_means_fills_of_single_texts(edit_bundle: EditBundle) -> None:
    # Bundles of earlier releases have no fields for tasks and pairs.
    def version(bundle: dict[str, Any]) -> None:
        assert bundle["schema_version"] == 2

    bundle = read_bundle(edit_bundle(version))
    assert (bundle.tasks, bundle.pairs, bundle.token_types) == (("fill-mask",), False, 1)
    assert (bundle.classification, bundle.golden.labels) == (None, ())


BAD_DESCRIPTIONS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no task": (
        lambda b: b.update(tasks=[]),
        "tasks must be a list with at least 1 entry (got [])",
    ),
    "unknown task": (
        lambda b: b.update(tasks=["translation"]),
        "tasks[0] must be 'fill-mask', 'text-classification' or 'sparse' (got \"translation\")",
    ),
    "repeated task": (
        lambda b: b.update(tasks=["fill-mask", "fill-mask"]),
        'tasks must differ from each other (got "fill-mask" twice)',
    ),
    "task without head": (
        lambda b: b.update(classification=None),
        (
            "classification must be present if and only if tasks contains text-classification "
            f"(got the tasks {BOTH})"
        ),
    ),
    "head without task": (
        lambda b: b.update(tasks=["fill-mask"]),
        (
            "classification must be present if and only if tasks contains text-classification "
            "(got the tasks fill-mask)"
        ),
    ),
    "prompts without task": (
        lambda b: b.update(tasks=["text-classification"]),
        (
            "golden.prompts must have entries if and only if tasks contains fill-mask "
            "(got 2 with the tasks text-classification)"
        ),
    ),
    "task without prompts": (
        lambda b: b["golden"].update(prompts=[]),
        (
            "golden.prompts must have entries if and only if tasks contains fill-mask "
            f"(got 0 with the tasks {BOTH})"
        ),
    ),
    "task without golden labels": (
        lambda b: b["golden"].pop("labels"),
        (
            "golden.labels must have entries if and only if tasks contains text-classification "
            f"(got 0 with the tasks {BOTH})"
        ),
    ),
    "no tolerance of fills": (
        lambda b: b["golden"].pop("log_prob_tolerance"),
        "golden.log_prob_tolerance is missing" + EXPORT_AGAIN,
    ),
    "no tolerance of labels": (
        lambda b: b["golden"].pop("logit_tolerance"),
        "golden.logit_tolerance is missing" + EXPORT_AGAIN,
    ),
    "tolerance of zero": (
        lambda b: b["golden"].update(logit_tolerance=0),
        "golden.logit_tolerance must be more than 0 (got 0)",
    ),
    "too few logits": (
        lambda b: b["golden"]["labels"][1].update(logits=[1.0]),
        "golden.labels must have one logit per label, 2 in total (got 1)",
    ),
    "logit as text": (
        lambda b: b["golden"]["labels"][0].update(logits=[1.0, "2"]),
        'golden.labels[0].logits[1] must be a number (got "2")',
    ),
    "golden labels without text": (
        lambda b: b["golden"]["labels"][0].pop("text"),
        "golden.labels[0].text is missing" + EXPORT_AGAIN,
    ),
    "no labels": (
        lambda b: b["classification"].update(labels=[]),
        "classification.labels must be a list with at least 1 entry (got [])",
    ),
    "repeated label": (
        lambda b: b["classification"].update(labels=["good", "good"]),
        'classification.labels must differ from each other (got "good" twice)',
    ),
    "label as number": (
        lambda b: b["classification"].update(labels=[0, 1]),
        "classification.labels[0] must be a text (got 0)",
    ),
    "unknown problem": (
        lambda b: b["classification"].update(problem_type="ranking"),
        (
            "classification.problem_type must be 'single_label_classification', "
            "'multi_label_classification' or 'regression' (got \"ranking\")"
        ),
    ),
    "unknown pooling": (
        lambda b: b["classification"].update(pooling="last"),
        "classification.pooling must be 'first' or 'mean' (got \"last\")",
    ),
    "unknown field of the head": (
        lambda b: b["classification"].update(activation="tanh"),
        "classification.activation is an unknown field" + EXPORT_AGAIN,
    ),
    "pairs as number": (
        lambda b: b.update(pairs=1),
        "pairs must be true or false (got 1)",
    ),
    "golden pair without pairs": (
        lambda b: b.update(pairs=False, token_types=1),
        'golden must have no text_pair if pairs is false (got "The dog barked.")',
    ),
    "types without pairs": (
        lambda b: b.update(pairs=False),
        "token_types must be 1 if pairs is false (got 2)",
    ),
    "no token type": (
        lambda b: b.update(token_types=0),
        "token_types must be at least 1 (got 0)",
    ),
}


@pytest.mark.parametrize("case", BAD_DESCRIPTIONS)
def test_refuses(case: str, edit_bundle: EditBundle) -> None:
    change, reason = BAD_DESCRIPTIONS[case]

    def changes(bundle: dict[str, Any]) -> None:
        _with_labels(bundle)
        change(bundle)

    with pytest.raises(BundleError) as caught:
        read_bundle(edit_bundle(changes))
    assert str(caught.value) == f"The bundle is invalid: {reason}."


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({}, "verification.labels.int8 must be an object (got null)"),
        ({"labels": []}, "verification.labels.int8 must be an object (got null)"),
        (
            {"labels": {"int8": {"mean_logit_difference": 0.1}}},
            "verification.labels.int8.p99_logit_difference is missing" + EXPORT_AGAIN,
        ),
        (
            {"labels": {"int8": {"mean_logit_difference": "0", "p99_logit_difference": 1}}},
            'verification.labels.int8.mean_logit_difference must be a number (got "0")',
        ),
    ],
)
def test_refuses_int8_labels_without_figures(
    figures: dict[str, Any], reason: str, edit_bundle: EditBundle
) -> None:
    def changes(bundle: dict[str, Any]) -> None:
        _with_labels(bundle)
        bundle |= {"precision": "int8", "verification": figures}

    bundle = read_bundle(edit_bundle(changes))
    with pytest.raises(BundleError) as caught:
        bundle.label_int8_figures()
    assert str(caught.value) == f"The bundle is invalid: {reason}."

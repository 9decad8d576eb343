"""Fields of bundle.json: what is read, and the sentence about each that is refused."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fillmask.bundles.bundle import MAX_BYTES, Bundle, read_bundle
from fillmask.bundles.description import Classification
from fillmask.errors import BundleError
from tests.service.conftest import EditBundle

EXPORT_AGAIN = "; export the checkpoint with this release of fillmask"
NAME_RULE = (
    "name must have 1 to 200 printable characters without a blank at its start or end, and without "
    'a part of a path that leads elsewhere (got "{}")'
)
CLASSIFICATION = "classification must be present if and only if tasks contains text-classification "
BOTH = "fill-mask, text-classification"
REMOVED = object()
MANY = 50_000


def _fills(bundle: dict[str, Any]) -> None:
    """Keep the description of the tiny model, which has version 2."""


def _labels(bundle: dict[str, Any]) -> None:
    """Make the description that of a model with fills, labels and pairs."""
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


def _sparse(bundle: dict[str, Any]) -> None:
    """Make the description that of a model with sparse vectors."""
    bundle |= {
        "tasks": ["sparse"],
        "sparse": {"pooling": "max", "activation": "relu"},
        "golden": {
            "prompts": [],
            "weight_tolerance": 0.002,
            "vectors": [{"text": "The tea.", "weights": [{"token": 7, "weight": 0.5}]}],
        },
    }


def test_reads_labels(edit_bundle: EditBundle) -> None:
    bundle = read_bundle(edit_bundle(_labels))
    assert bundle.tasks == ("fill-mask", "text-classification")
    assert (bundle.pairs, bundle.token_types) == (True, 2)
    assert bundle.classification == Classification(
        labels=("bad", "good"), problem_type="single_label_classification", pooling="first"
    )
    first, second = bundle.golden.labels
    assert (first.text, first.text_pair, first.logits) == ("The tea.", None, (0.5, -1.5))
    assert (second.text, second.text_pair, second.logits) == ("Tea.", "Water.", (2, 3.25))
    assert [one.text_pair for one in bundle.golden.prompts] == ["The dog barked.", None]


def test_reads_sparse_vectors(edit_bundle: EditBundle) -> None:
    bundle = read_bundle(edit_bundle(_sparse))
    assert bundle.sparse is not None
    assert bundle.sparse.query_weights is None
    [golden] = bundle.golden.vectors
    assert (golden.weights[0].token, golden.weights[0].weight) == (7, 0.5)


def test_version_2_means_fills_of_single_texts(edit_bundle: EditBundle) -> None:
    # Bundles of earlier releases have no fields for tasks and pairs.
    bundle = read_bundle(edit_bundle(_fills))
    assert bundle.schema_version == 2
    assert (bundle.tasks, bundle.pairs, bundle.token_types) == (("fill-mask",), False, 1)
    assert (bundle.classification, bundle.golden.labels) == (None, ())


# what the bundle is for, the path of a field, its new value, and what is wrong then
Row = tuple[Callable[[dict[str, Any]], None], str, object, str]
ROWS: list[Row] = [
    (_fills, "license", REMOVED, f"license is missing{EXPORT_AGAIN}"),
    (_fills, "colour", 1, f"colour is an unknown field{EXPORT_AGAIN}"),
    (_fills, "name", 3, "name must be a text (got 3)"),
    (_fills, "name", {"a": 1}, "name must be a text (got an object)"),
    (_fills, "name", "", NAME_RULE.format("")),
    (_fills, "name", "a ", NAME_RULE.format("a ")),
    (_fills, "name", "a\nserves b", NAME_RULE.format("a\\\\nserves b")),
    (_fills, "name", "a\x1b[2J", NAME_RULE.format("a\\\\x1b[2J")),
    (_fills, "name", "a\u2028b", NAME_RULE.format("a\\\\u2028b")),
    (_fills, "name", "a/../b", NAME_RULE.format("a/../b")),
    (_fills, "name", "a" * 201, NAME_RULE.format(77 * "a" + "…")),
    (_fills, "max_tokens", "32", 'max_tokens must be a whole number (got "32")'),
    (_fills, "max_tokens", True, "max_tokens must be a whole number (got true)"),
    (_fills, "max_tokens", 32.0, "max_tokens must be a whole number (got 32.0)"),
    (_fills, "max_tokens", 0, "max_tokens must be at least 1 (got 0)"),
    (
        _fills,
        "max_tokens",
        33,
        "max_tokens must be at most architecture.max_positions, 32 (got 33)",
    ),
    (_fills, "architecture d_ff", REMOVED, f"architecture.d_ff is missing{EXPORT_AGAIN}"),
    (_fills, "architecture gates", 2, f"architecture.gates is an unknown field{EXPORT_AGAIN}"),
    (_fills, "architecture tied", 1, "architecture.tied must be true or false (got 1)"),
    (_fills, "golden", [], "golden must be an object (got [])"),
    (_fills, "schema_version", 5, f"schema_version must be 2 or 3 or 4 (got 5){EXPORT_AGAIN}"),
    (_fills, "precision", "fp8", "precision must be 'fp32' or 'int8' (got \"fp8\")"),
    (
        _fills,
        "special_token_ids",
        [0, 1],
        "special_token_ids must contain mask_token_id, 4 (got [0, 1])",
    ),
    (
        _fills,
        "special_token_ids",
        [4, 44],
        "special_token_ids must be below architecture.vocab_size, 44 (got 44)",
    ),
    (_fills, "special_token_ids", ["4"], 'special_token_ids[0] must be a whole number (got "4")'),
    (_fills, "special_token_ids", [4, -1], "special_token_ids[1] must be at least 0 (got -1)"),
    (
        _fills,
        "golden prompts 0 fills",
        [[]],
        "golden.prompts[0].fills[0] must be a list with at least 1 entry (got [])",
    ),
    (
        _fills,
        "golden log_prob_tolerance",
        0,
        "golden.log_prob_tolerance must be more than 0 (got 0)",
    ),
    (
        _fills,
        "golden log_prob_tolerance",
        10**400,
        f"golden.log_prob_tolerance must be a number (got 1{39 * '0'}…)",
    ),
    (
        _fills,
        "files ../model.onnx",
        {},
        f'files["../model.onnx"] is an unknown field{EXPORT_AGAIN}',
    ),
    (_fills, "files model.onnx", REMOVED, f'files["model.onnx"] is missing{EXPORT_AGAIN}'),
    (_fills, "a\n1", 1, f'["a\\n1"] is an unknown field{EXPORT_AGAIN}'),
    (_fills, "a" * 1000, 1, f'["{77 * "a"}…"] is an unknown field{EXPORT_AGAIN}'),
    (_labels, "tasks", [], "tasks must be a list with at least 1 entry (got [])"),
    (
        _labels,
        "tasks",
        ["translation"],
        (
            "tasks[0] must be 'fill-mask', 'text-classification', 'token-classification' or "
            "'sparse' (got \"translation\")"
        ),
    ),
    (
        _labels,
        "tasks",
        ["fill-mask", "fill-mask"],
        'tasks must differ from each other (got "fill-mask" twice)',
    ),
    (_labels, "classification", None, f"{CLASSIFICATION}(got the tasks {BOTH})"),
    (_labels, "tasks", ["fill-mask"], f"{CLASSIFICATION}(got the tasks fill-mask)"),
    (
        _labels,
        "tasks",
        ["text-classification"],
        (
            "golden.prompts must have entries if and only if tasks contains fill-mask "
            "(got 2 with the tasks text-classification)"
        ),
    ),
    (
        _labels,
        "golden prompts",
        [],
        (
            "golden.prompts must have entries if and only if tasks contains fill-mask "
            f"(got 0 with the tasks {BOTH})"
        ),
    ),
    (
        _labels,
        "golden labels",
        REMOVED,
        (
            "golden.labels must have entries if and only if tasks contains text-classification "
            f"(got 0 with the tasks {BOTH})"
        ),
    ),
    (
        _labels,
        "golden log_prob_tolerance",
        REMOVED,
        f"golden.log_prob_tolerance is missing{EXPORT_AGAIN}",
    ),
    (
        _labels,
        "golden logit_tolerance",
        REMOVED,
        f"golden.logit_tolerance is missing{EXPORT_AGAIN}",
    ),
    (
        _labels,
        "golden labels 1 logits",
        [1.0],
        "golden.labels must have one logit per label, 2 in total (got 1)",
    ),
    (
        _labels,
        "classification labels",
        [],
        "classification.labels must be a list with at least 1 entry (got [])",
    ),
    (
        _labels,
        "classification labels",
        ["good", "good"],
        'classification.labels must differ from each other (got "good" twice)',
    ),
    (
        _labels,
        "classification problem_type",
        "ranking",
        (
            "classification.problem_type must be 'single_label_classification', "
            "'multi_label_classification' or 'regression' (got \"ranking\")"
        ),
    ),
    (
        _labels,
        "classification activation",
        "tanh",
        f"classification.activation is an unknown field{EXPORT_AGAIN}",
    ),
    (_labels, "pairs", False, "token_types must be 1 if pairs is false (got 2)"),
    (_labels, "token_types", 0, "token_types must be at least 1 (got 0)"),
    (_sparse, "sparse pooling", "mean", "sparse.pooling must be 'max' or 'sum' (got \"mean\")"),
    (_sparse, "sparse max_active_dims", 0, "sparse.max_active_dims must be at least 1 (got 0)"),
    (
        _sparse,
        "sparse query_weights",
        [0.5],
        "sparse.query_weights must have one weight per token, 44 in total (got 1)",
    ),
    (
        _sparse,
        "sparse query_weights",
        [-1.0],
        "sparse.query_weights[0] must be at least 0.0 (got -1.0)",
    ),
    (
        _sparse,
        "sparse",
        REMOVED,
        "sparse must be present if and only if tasks contains sparse (got the tasks sparse)",
    ),
    (
        _sparse,
        "golden weight_tolerance",
        REMOVED,
        f"golden.weight_tolerance is missing{EXPORT_AGAIN}",
    ),
]


@pytest.mark.parametrize(("make", "path", "value", "reason"), ROWS)
def test_refuses(
    make: Callable[[dict[str, Any]], None],
    path: str,
    value: object,
    reason: str,
    edit_bundle: EditBundle,
) -> None:
    def change(bundle: dict[str, Any]) -> None:
        make(bundle)
        *parents, last = (int(name) if name.isdigit() else name for name in path.split(" "))
        inner: Any = bundle
        for name in parents:
            inner = inner[name]
        if value is REMOVED:
            del inner[last]
        else:
            inner[last] = value

    with pytest.raises(BundleError) as caught:
        read_bundle(edit_bundle(change))
    assert str(caught.value) == f"The bundle is invalid: {reason}."


def test_refuses_a_list(bundle_copy: Path) -> None:
    (bundle_copy / "bundle.json").write_text("[]")
    with pytest.raises(BundleError, match=r"bundle.json must be an object"):
        read_bundle(bundle_copy)


def test_refuses_a_golden_pair_without_pairs(edit_bundle: EditBundle) -> None:
    def change(bundle: dict[str, Any]) -> None:
        _labels(bundle)
        bundle |= {"pairs": False, "token_types": 1}

    with pytest.raises(BundleError, match=r'no text_pair if pairs is false \(got "The dog barked'):
        read_bundle(edit_bundle(change))


FIGURES = {"mean_log_prob_difference": 0.03, "p99_log_prob_difference": 0.12}


@pytest.mark.parametrize(
    ("verification", "read", "reason"),
    [
        (
            {"int8": {}},
            Bundle.int8_figures,
            f"int8.mean_log_prob_difference is missing{EXPORT_AGAIN}",
        ),
        (
            {"int8": FIGURES | {"p99_log_prob_difference": "small"}},
            Bundle.int8_figures,
            'int8.p99_log_prob_difference must be a number (got "small")',
        ),
        ({"int8": []}, Bundle.int8_figures, "int8 must be an object (got [])"),
        ({"labels": []}, Bundle.label_int8_figures, "labels.int8 must be an object (got null)"),
        (
            {"labels": {"int8": {"mean_logit_difference": 0.1}}},
            Bundle.label_int8_figures,
            f"labels.int8.p99_logit_difference is missing{EXPORT_AGAIN}",
        ),
    ],
)
def test_refuses_int8_without_figures(
    verification: dict[str, Any],
    read: Callable[[Bundle], object],
    reason: str,
    edit_bundle: EditBundle,
) -> None:
    def change(bundle: dict[str, Any]) -> None:
        _labels(bundle)
        bundle |= {"precision": "int8", "verification": verification}

    bundle = read_bundle(edit_bundle(change))
    with pytest.raises(BundleError) as caught:
        read(bundle)
    assert str(caught.value) == f"The bundle is invalid: verification.{reason}."


@pytest.mark.parametrize("case", ["prompts", "fields"])
def test_stops_at_the_first_of_many_errors(
    case: str, edit_bundle: EditBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Errors take much more memory than the values in bundle.json.
    def change(bundle: dict[str, Any]) -> None:
        if case == "prompts":
            bundle["golden"]["prompts"] = [1] * MANY
        else:
            bundle |= {str(number): number for number in range(MANY)}

    path: Path = edit_bundle(change)
    monkeypatch.setitem(MAX_BYTES, "bundle.json", 2**20)  # the reader allocates them all
    tracemalloc.start()
    with pytest.raises(BundleError):
        read_bundle(path)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 400 * MANY

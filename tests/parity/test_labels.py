"""Labels over HTTP, compared with the text-classification pipeline of transformers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers

from tests.parity.served import TOLERANCE, Served, serve

LABELS = ["sport", "news", "science", "art"]
SEQUENCE = "ForSequenceClassification"
NAMED: dict[str, Any] = {"id2label": dict(enumerate(LABELS))}
# name of a case -> (kind, end of the class name, changed fields)
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{
        kind: (kind, SEQUENCE, NAMED)
        for kind in (
            *("BERT", "RoBERTa", "DistilBERT", "ALBERT", "ELECTRA", "MPNet", "XLM-RoBERTa"),
            *("ModernBERT", "CamemBERT"),
        )
    },
    "ModernBERT, mean": ("ModernBERT", SEQUENCE, NAMED | {"classifier_pooling": "mean"}),
    "several labels per text": (
        *("BERT", SEQUENCE),
        NAMED | {"problem_type": "multi_label_classification"},
    ),
    "one label": ("RoBERTa", SEQUENCE, {"id2label": {0: "spam"}}),
    "regression": ("ALBERT", SEQUENCE, {"num_labels": 1, "problem_type": "regression"}),
}
TEXTS = ["The capital of France is Paris.", "She drank a cup of tea (or coffee?).", "Rome", "!"]
PAIRS = [
    {"text": "Where is she?", "text_pair": "She is in Rome, and Rome is old!"},
    {"text": "Rome", "text_pair": "a"},
]
# the function depends on the type of the problem, not on the family
OF_PROBLEMS = ("BERT", "several labels per text", "one label", "regression")
FUNCTIONS = {
    case: (None, *("softmax", "sigmoid", "none") * (case in OF_PROBLEMS)) for case in CASES
}


@pytest.fixture(scope="module", params=CASES)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Service of a random checkpoint with a classification head."""
    kind, head, changes = CASES[request.param]
    with serve(tmp_path_factory.mktemp("labels"), kind, head, **changes) as one:
        yield one


def check_labels(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Compare two rankings, in which labels with almost equal scores may change places."""
    assert {one["label"] for one in ours} == {one["label"] for one in theirs}
    scores = [one["score"] for one in ours]
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([one["score"] for one in theirs], abs=TOLERANCE)
    by_label = {one["label"]: one["score"] for one in theirs}
    assert scores == pytest.approx([by_label[one["label"]] for one in ours], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("served", "function"),
    [(case, function) for case, functions in FUNCTIONS.items() for function in functions],
    indirect=["served"],
    scope="module",  # of the service
)
def test_labels_are_the_pipelines(served: Served, function: str | None) -> None:
    make: Any = transformers.TextClassificationPipeline
    pipeline = make(model=served.model, tokenizer=served.tokenizer, device="cpu")
    inputs = [*TEXTS, *PAIRS]
    ours = served.post("/classify", inputs, function_to_apply=function)
    options = {} if function is None else {"function_to_apply": function}
    assert len(ours) == len(inputs)
    for one, labels in zip(inputs, ours, strict=True):
        theirs = pipeline(one, top_k=None, **options)
        check_labels(labels, theirs)
        if function is not None:
            continue
        assert served.post("/classify", one, function_to_apply=function) == [labels]
        best = served.post("/classify", one, function_to_apply=function, top_k=1)
        assert best == [labels[:1]]
        assert served.post("/", one, function_to_apply=function, top_k=99) == [labels]


@pytest.mark.parametrize("served", ["BERT", "ModernBERT, mean"], indirect=True, scope="module")
def test_labels_depend_on_no_other_request(served: Served) -> None:
    # Each of 32 mixed texts and pairs gets the same labels alone and among the others.
    words = itertools.cycle(["The capital of France is Paris.", "a cup of tea", "Rome", "?"])
    texts = [" ".join(itertools.islice(words, 1 + i % 5)) for i in range(16)]
    inputs: list[Any] = [*texts, *({"text": text, "text_pair": "Rome is old!"} for text in texts)]
    together = served.post("/classify", inputs, function_to_apply="none")
    for one, labels in zip(inputs, together, strict=True):
        [alone] = served.post("/classify", one, function_to_apply="none")
        assert [label["label"] for label in alone] == [label["label"] for label in labels]
        assert [label["score"] for label in alone] == pytest.approx(
            [label["score"] for label in labels], abs=1e-6
        )


@pytest.mark.parametrize("head", ["ForNextSentencePrediction", "ForPreTraining"])
@torch.inference_mode()
def test_next_sentence_prediction(head: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    # BertForPreTraining has the tasks fill-mask and text-classification, in this order.
    with serve(tmp_path_factory.mktemp("next"), "BERT", head) as served:
        for pair in PAIRS:
            outputs = served.model(**served.encode(**pair))
            fills = head == "ForPreTraining"
            logits = outputs.seq_relationship_logits if fills else outputs.logits
            expected = torch.softmax(logits[0], -1).tolist()
            [labels] = served.post("/classify", pair)
            found = {one["label"]: one["score"] for one in labels}
            assert found == pytest.approx(
                dict(zip(("is_next", "not_next"), expected, strict=True)), abs=TOLERANCE
            )
        info = served.client.get("/info").json()
        assert info["labels"] == ["is_next", "not_next"]
        assert info["tasks"] == ["fill-mask", "text-classification"][not fills :]
        if not fills:
            assert served.post("/", PAIRS[0]) == served.post("/classify", PAIRS[0])
            return
        masked = {"text": "She is in [MASK].", "text_pair": "Rome is old!"}
        assert served.post("/", masked) == served.post("/fill-mask", masked)
        encoded = served.encode(**masked)
        position = encoded["input_ids"][0].tolist().index(served.tokenizer.mask_token_id)
        scores = torch.softmax(served.model(**encoded).prediction_logits[0, position], -1)
        for fill in served.post("/fill-mask", masked):
            assert fill["score"] == pytest.approx(scores[fill["token"]].item(), abs=TOLERANCE)

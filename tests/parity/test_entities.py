"""Entities over HTTP, equal to those of transformers' token-classification pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
import transformers

from tests.parity.served import TOLERANCE, Served, serve

# with and without the form of Ramshaw and Marcus, and with a hyphen in a name
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC", "B-ORG-X")
FAMILIES = (
    *("BERT", "RoBERTa", "XLM-RoBERTa", "ALBERT", "ELECTRA", "MPNet", "ModernBERT"),
    *("DistilBERT", "CamemBERT", "ESM-2"),
)
STRATEGIES = ("none", "simple", "first", "average", "max")
TEXTS = (
    "The capital of France is Rome, and Rome is old!",
    "Ünïcode naïve café in Zürich — très bien!",
    "東京は日本の首都です。 Rome",
    "a party 😀🎉 at Rome's 🎉",
    "tabs\tand  double   spaces\nand Rome",
    " leading space and trailing ",
    "U.S.A. e-mail: she@rome.it +39 06 7946",
    "tea",
)
PROTEIN = "MKTAYIAKQRQISFVKSHFSRQ"
ServedBy = Callable[[str], Served]


@pytest.fixture(scope="module")
def served_by(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBy]:
    """Function that serves a tagger of a family, once for all tests."""
    with ExitStack() as stack:

        @cache
        def start(kind: str) -> Served:
            scratch, names = tmp_path_factory.mktemp("tagger"), dict(enumerate(LABELS))
            return stack.enter_context(
                serve(scratch, kind, "ForTokenClassification", id2label=names)
            )

        yield start


def pipeline_of(served: Served) -> Any:
    make: Any = transformers.TokenClassificationPipeline
    return make(model=served.model, tokenizer=served.tokenizer, device="cpu")


def longest_text(served: Served) -> str:
    most = int(served.client.get("/info").json()["limits"]["max_tokens"])
    text = "Rome"
    while len(served.tokenizer(f"{text} is old")["input_ids"]) <= most:
        text += " is old"
    return text


@pytest.mark.parametrize("kind", FAMILIES)
def test_entities_are_the_pipelines(kind: str, served_by: ServedBy) -> None:
    # Labels, words, offsets and indices are equal.
    # The tokenizer of ESM-2 in transformers knows neither offsets nor words.
    served = served_by(kind)
    pipeline, seen, fast = pipeline_of(served), set(), served.tokenizer.is_fast
    for text in (*TEXTS, longest_text(served)) if fast else (PROTEIN,):
        for strategy in STRATEGIES if fast else STRATEGIES[:2]:
            for ignored in (["O"], []):
                options = {"aggregation_strategy": strategy, "ignore_labels": ignored}
                with warnings.catch_warnings():  # about words of vocabularies without marks
                    warnings.simplefilter("ignore")
                    theirs = pipeline(text, **options)
                ours = served.post("/classify-tokens", text, **options)
                scores = [one.pop("score") for one in ours]
                assert scores == pytest.approx(
                    [float(one.pop("score")) for one in theirs], abs=TOLERANCE
                )
                for one in () if fast else (*ours, *theirs):
                    del one["start"], one["end"]
                assert ours == theirs
                seen |= {one.get("entity", one.get("entity_group")) for one in ours}
    assert len(seen) > 1 or not fast


def test_the_default_and_other_paths(served_by: ServedBy) -> None:
    served = served_by("BERT")
    simple = served.post("/classify-tokens", TEXTS[0], aggregation_strategy="simple")
    assert served.post("/classify-tokens", TEXTS[0]) == simple != []
    assert served.post("/", TEXTS[0]) == simple
    assert served.post("/classify-tokens", [TEXTS[0], "tea"])[0] == simple
    name = served.client.get("/info").json()["name"]
    assert served.post(f"/models/{name}", TEXTS[0]) == simple


def test_parts_of_a_pair(served_by: ServedBy) -> None:
    # Offsets count from the start of each part, and no entity is in both.
    served = served_by("BERT")
    first, second = TEXTS[0], "She is in Rome 😀 now"
    options = {"aggregation_strategy": "none", "ignore_labels": []}
    found = served.post("/classify-tokens", {"text": first, "text_pair": second}, **options)
    encoded = served.tokenizer(first, second, return_special_tokens_mask=True)
    kept = [index for index, one in enumerate(encoded["special_tokens_mask"]) if not one]
    assert [one["index"] for one in found] == kept
    expected = served.logits(first, second).softmax(-1)[kept].max(-1)
    assert [one["score"] for one in found] == pytest.approx(expected.values.tolist(), abs=TOLERANCE)
    assert [one["entity"] for one in found] == [LABELS[i] for i in expected.indices.tolist()]
    for one in found:
        part = {"text": first, "text_pair": second}[one["part"]]
        shown = part[one["start"] : one["end"]].lower()
        assert one["word"].removeprefix("##") in {shown, "[UNK]"}


def test_windows_of_a_long_text(served_by: ServedBy) -> None:
    # Each token is there once, and has the label of the window in which it has most context.
    served = served_by("BERT")
    text = " ".join(TEXTS[0] for _ in range(40))
    options: dict[str, Any] = {"aggregation_strategy": "none", "ignore_labels": []}
    refused = served.client.post("/classify-tokens", json={"inputs": text, "parameters": options})
    assert refused.status_code == 422
    assert "on_long_text to window" in refused.json()["error"]
    found = served.post("/classify-tokens", text, on_long_text="window", **options)
    encoded = served.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    spans = [(one["start"], one["end"]) for one in found]
    assert spans == [tuple(one) for one in encoded["offset_mapping"]]
    assert [one["index"] for one in found] == list(range(1, len(found) + 1))
    short = served.post("/classify-tokens", TEXTS[0], **options)
    same = served.post("/classify-tokens", TEXTS[0], on_long_text="window", **options)
    assert same == short

"""One-line errors for invalid classification heads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from tests.model.checkpoints.families.samples import SAMPLES
from tests.model.samples import change_config, change_tensors

SEQUENCE = "ForSequenceClassification"
# a sample and another task of its family
OTHER_TASKS = [
    ("BERT, three heads", "ForTokenClassification"),
    ("BERT, three heads", "ForQuestionAnswering"),
    ("BERT, three heads", "ForMultipleChoice"),
    ("RoBERTa, one type", "ForTokenClassification"),
    ("RoBERTa, one type", "ForMultipleChoice"),
    ("DistilBERT, three heads", "ForTokenClassification"),
    ("DistilBERT, three heads", "ForQuestionAnswering"),
    ("ELECTRA, narrow embeddings", "ForMultipleChoice"),
    ("ESM-2", "ForTokenClassification"),
    ("ModernBERT", "ForTokenClassification"),
    ("ModernBERT", "ForMultipleChoice"),
]


@pytest.mark.parametrize(("name", "head"), OTHER_TASKS)
def test_another_task_is_refused(name: str, head: str, tmp_path: Path) -> None:
    SAMPLES[name].make(head=head).save_pretrained(tmp_path)
    message = (
        r"config\.json: architectures must name a class for masked language modelling or for "
        rf"classification of entire texts \(got '\w+{head}'\)"
    )
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(("name", "head"), [*OTHER_TASKS, ("BERT, three heads", SEQUENCE)])
def test_a_head_without_architectures_is_refused(name: str, head: str, tmp_path: Path) -> None:
    # The tensors alone do not determine the task, for example in ModernBERT.
    SAMPLES[name].make(head=head).save_pretrained(tmp_path)
    change_config(tmp_path, architectures=None)
    message = (
        r"\(unknown: .*(classifier|qa_outputs)\..*; set architectures in config\.json to "
        "the name of a class for sequence classification"
    )
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)


def drop(*names: str) -> Callable[[Path], None]:
    """Return a function that removes tensors."""
    return lambda directory: change_tensors(
        directory, lambda tensors: [tensors.pop(name) for name in names]
    )


def put(**tensors: Tensor) -> Callable[[Path], None]:
    """Return a function that adds or replaces tensors.

    A double underscore in a name means a dot.
    """
    named = {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    return lambda directory: change_tensors(directory, lambda old: old.update(named))


def configure(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes fields of config.json."""
    return lambda directory: change_config(directory, **changes)


BROKEN: dict[str, tuple[str, str, Callable[[Path], Any], str]] = {
    "BERT without its pooler": (
        "BERT, three heads",
        SEQUENCE,
        drop("bert.pooler.dense.weight", "bert.pooler.dense.bias"),
        r"\(missing: bert\.pooler\.dense\.bias, bert\.pooler\.dense\.weight\)$",
    ),
    "BERT without its output layer": (
        "BERT, three heads",
        SEQUENCE,
        drop("classifier.weight"),
        r"config\.json: the weights must have the tensor classifier\.weight of the class in arch",
    ),
    "next sentence without its output layer": (
        "BERT, three heads",
        "ForNextSentencePrediction",
        drop("cls.seq_relationship.bias"),
        r"\(missing: cls\.seq_relationship\.bias\)$",
    ),
    "three labels for the next sentence": (
        "BERT, three heads",
        "ForNextSentencePrediction",
        put(cls__seq_relationship__weight=torch.zeros(3, 33)),
        r"cls\.seq_relationship\.weight must have the shape \(2, 33\) \(got \(3, 33\)\)",
    ),
    "RoBERTa with a dense layer of another width": (
        "RoBERTa, one type",
        SEQUENCE,
        put(classifier__dense__weight=torch.zeros(33, 32)),
        r"classifier\.dense\.weight must have the shape \(33, 33\) \(got \(33, 32\)\)",
    ),
    "ALBERT without its pooler": (
        "ALBERT, one group",
        SEQUENCE,
        drop("albert.pooler.weight"),
        r"\(missing: albert\.pooler\.weight\)$",
    ),
    "ModernBERT without its norm": (
        "ModernBERT",
        SEQUENCE,
        drop("head.norm.weight"),
        r"\(missing: head\.norm\.weight\)$",
    ),
    "ModernBERT with a number as rope_parameters": (
        "ModernBERT",
        SEQUENCE,
        configure(rope_parameters=5),
        r"config\.json: rope_parameters must be an object \(got 5\)",
    ),
    "ModernBERT with a number as the parameters of a layer type": (
        "ModernBERT",
        SEQUENCE,
        configure(rope_parameters={"full_attention": 5}),
        r"config\.json: rope_parameters\.full_attention must be an object \(got 5\)",
    ),
    "ModernBERT with one base for all layers": (
        "ModernBERT",
        SEQUENCE,
        configure(rope_parameters={"rope_theta": 10_000.0}),
        r"config\.json: rope_parameters may contain only full_attention and sliding_attention",
    ),
    "ModernBERT with a base that is a text": (
        "ModernBERT",
        SEQUENCE,
        configure(rope_parameters={"full_attention": {"rope_theta": "10000"}}),
        r"config\.json: rope_parameters\.full_attention\.rope_theta must be a number \(got",
    ),
    "ModernBERT with another pooling": (
        "ModernBERT",
        SEQUENCE,
        configure(classifier_pooling="max"),
        r"config\.json: classifier_pooling must be cls or mean \(got 'max'\)",
    ),
    "an output layer without rows": (
        "BERT, three heads",
        SEQUENCE,
        put(classifier__weight=torch.tensor(0.0)),
        r"classifier\.weight must be .* \(got \(\)\)",
    ),
    "an output layer that is not finite": (
        "DistilBERT, three heads",
        SEQUENCE,
        put(classifier__bias=torch.tensor([0.0, torch.nan])),
        r"weights must be finite \(got NaN or infinity in classifier\.bias\)",
    ),
    "labels of another number": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label={"0": "a", "1": "b", "2": "c"}),
        (
            r"config\.json: id2label must be an object with the keys 0 to 1, one for each row of "
            r"classifier\.weight \(got \['0', '1', '2'\]\)"
        ),
    ),
    "a label missing": (
        "RoBERTa, one type",
        SEQUENCE,
        configure(id2label={"0": "a", "2": "c"}),
        r"id2label must .* row of classifier\.out_proj\.weight \(got \['0', '2'\]\)",
    ),
    "labels as a list": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label=["a", "b"]),
        r"config\.json: id2label must be an object .* \(got \['a', 'b'\]\)",
    ),
    "an empty label": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label={"0": "a", "1": ""}),
        r"config\.json: id2label must have a non-blank text at 1 \(got ''\)",
    ),
    "a label that is not text": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label={"0": ["a"], "1": "b"}),
        r"config\.json: id2label must have a non-blank text at 0 \(got \['a'\]\)",
    ),
    "labels for keys": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label={"a": 0, "b": 1}),
        r"config\.json: id2label must be an object with the keys 0 to 1.* \(got \['a', 'b'\]\)",
    ),
    "a text for the number of labels": (
        "BERT, three heads",
        SEQUENCE,
        configure(num_labels="2"),
        r"config\.json: num_labels must be 2, the .* \(got '2'\)",
    ),
    "a label twice": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label={"0": "1", "1": 1}),
        r"config\.json: id2label must have a different text at each key \(got '1' twice\)",
    ),
    "another number of labels": (
        "BERT, three heads",
        SEQUENCE,
        configure(id2label=None, num_labels=10**12),
        r"config\.json: num_labels must be 2, the number of rows of classifier\.weight \(got 10+\)",
    ),
    "neither labels nor their number": (
        "BERT, three heads",
        SEQUENCE,
        lambda directory: [
            configure(id2label=None, num_labels=None)(directory),
            put(classifier__weight=torch.zeros(3, 33))(directory),
        ],
        r"num_labels must be 3, the number of rows of classifier\.weight \(got None\)",
    ),
    "an unknown problem type": (
        "BERT, three heads",
        SEQUENCE,
        configure(problem_type="ranking"),
        r"config\.json: problem_type must be one of .*regression \(got 'ranking'\)",
    ),
}


@pytest.mark.parametrize(("name", "head", "damage", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_head_says_what_is_wrong(
    name: str, head: str, damage: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    SAMPLES[name].make(head=head).save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)

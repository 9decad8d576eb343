"""Checkpoints that are refused, each with one line that names what is wrong."""

from __future__ import annotations

import re
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

SEQUENCE, FILLS, NEXT = "ForSequenceClassification", "ForMaskedLM", "ForNextSentencePrediction"
BERT, ROBERTA, ALBERT = "BERT, three heads", "RoBERTa, one type", "ALBERT, one group"
MODERN, DISTIL, ESM = "ModernBERT", "DistilBERT, three heads", "ESM-1b"
TABLE = "bert.embeddings.word_embeddings.weight"
KEY = "bert.encoder.layer.1.attention.self.key.weight"
HUGE = 10**12
Damage = Callable[[Path], Any]
Tensors = dict[str, Tensor]

# a sample and another task of its family
OTHER_TASKS = [
    (BERT, "ForQuestionAnswering"),
    (ROBERTA, "ForMultipleChoice"),
]


@pytest.mark.parametrize(("name", "head"), [*OTHER_TASKS, (BERT, SEQUENCE)])
def test_another_task_or_none_is_refused(name: str, head: str, tmp_path: Path) -> None:
    # The tensors alone do not determine the task, for example in ModernBERT.
    SAMPLES[name].make(head=head).save_pretrained(tmp_path)
    if head != SEQUENCE:
        message = (
            r"config\.json: architectures must name a class for masked language modelling or for "
            rf"classification of texts or of tokens \(got '\w+{head}'\)"
        )
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(tmp_path)
    change_config(tmp_path, architectures=None)
    message = (
        r"\(unknown: .*(classifier|qa_outputs)\..*; set architectures in config\.json to "
        "the name of a class for sequence classification"
    )
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path)


def tensors(change: Callable[[Tensors], Any]) -> Damage:
    """Return a function that changes the weights."""
    return lambda directory: change_tensors(directory, change)


def drop(*names: str) -> Damage:
    return tensors(lambda weights: [weights.pop(name) for name in names])


def put(name: str, tensor: Tensor | float) -> Damage:
    """Return a function that adds or replaces a tensor, by default one of zeros."""
    return tensors(lambda weights: weights.update({name: torch.as_tensor(tensor)}))


def fields(**changes: Any) -> Damage:
    """Return a function that changes fields of config.json."""
    return lambda directory: change_config(directory, **changes)


def labels(names: Any) -> Damage:
    return fields(id2label=names)


def rope(**parameters: Any) -> Damage:
    return fields(rope_parameters=parameters)


def no_labels_for_three_rows(directory: Path) -> None:
    fields(id2label=None, num_labels=None)(directory)
    put("classifier.weight", torch.zeros(3, 33))(directory)


# sample, head, what is wrong with it, and what the error says
BROKEN: list[tuple[str, str, Damage, str]] = [
    # tensors
    (
        *(BERT, FILLS),
        tensors(lambda t: t.update({"cls.predictions.decoder.weight": t[TABLE] + 1e-3})),
        r"cls\.predictions\.decoder\.weight must be equal to the tied embedding table",
    ),
    (
        *(BERT, FILLS, put("bert.adapter.weight", torch.zeros(1))),
        r"the checkpoint must have only known tensors \(unknown: bert\.adapter\.weight\); remove",
    ),
    (
        *(BERT, FILLS),
        tensors(lambda t: [t.update({f"model.{name}": t.pop(name)}) for name in list(t)[1:]]),
        r"unknown: model\.bert.*; remove the prefix model\. from the names of the tensors",
    ),
    (
        *(BERT, FILLS),
        tensors(lambda t: t.update({f"module.{name}": one.clone() for name, one in t.items()})),
        r"module\.(.*) and \1 are the same tensor; remove one of them",
    ),
    (
        *(BERT, FILLS, drop("cls.predictions.bias", "cls.predictions.transform.dense.bias")),
        r"\(missing: cls\.predictions\.transform\.dense\.bias, cls\.predictions\.bias",
    ),
    (
        *(BERT, FILLS, put(TABLE, torch.zeros(96, 33))),
        r"bert\..*\.weight must have the shape \(97, 33\) \(got \(96, 33\)\)",
    ),
    (
        *(BERT, FILLS),
        tensors(lambda t: t.update({"embeddings.word_embeddings.weight": t[TABLE] + 1})),
        r"embeddings\.word_embeddings\.weight",
    ),
    (
        *(BERT, FILLS, put("cls.predictions.gate.weight", torch.zeros(1))),
        r"unknown: cls\.predictions\.gate\.weight\)",
    ),
    (
        *(BERT, FILLS, put("bert.encoder.layer.3.output.dense.bias", torch.zeros(33))),
        r"the checkpoint must have only known tensors \(unknown: bert\.encoder\.layer\.3\.output",
    ),
    (BERT, FILLS, drop(KEY), rf"\(missing: {re.escape(KEY)}"),
    (ALBERT, FILLS, fields(num_hidden_layers="3"), "num_hidden_layers must be"),
    (
        *(BERT, SEQUENCE, labels({"0": ["a"], "1": "b"})),
        r"config\.json: id2label must have a non-blank text at 0 \(got \['a'\]\)",
    ),
    (
        *(BERT, SEQUENCE, labels({"a": 0, "b": 1})),
        r"config\.json: id2label must be an object with the keys 0 to 1.* \(got \['a', 'b'\]\)",
    ),
    # tensors of a head
    (
        *(BERT, SEQUENCE, drop("bert.pooler.dense.weight", "bert.pooler.dense.bias")),
        r"\(missing: bert\.pooler\.dense\.bias, bert\.pooler\.dense\.weight\)$",
    ),
    (
        *(BERT, SEQUENCE, drop("classifier.weight")),
        r"config\.json: the weights must have the tensor classifier\.weight of the class in arch",
    ),
    (
        *(BERT, NEXT, put("cls.seq_relationship.weight", torch.zeros(3, 33))),
        r"cls\.seq_relationship\.weight must have the shape \(2, 33\) \(got \(3, 33\)\)",
    ),
    (MODERN, SEQUENCE, drop("head.norm.weight"), r"\(missing: head\.norm\.weight\)$"),
    (BERT, SEQUENCE, put("classifier.weight", 0.0), r"classifier\.weight must be .* \(got \(\)\)"),
    (
        *(DISTIL, SEQUENCE, put("classifier.bias", torch.tensor([0.0, torch.nan]))),
        r"weights must be finite \(got NaN or infinity in classifier\.bias\)",
    ),
    # values that change the mathematics
    *(
        (BERT, FILLS, fields(**{name: value}), rf"config\.json: .*{re.escape(repr(value))}")
        for name, value in (
            ("hidden_act", "mish"),
            ("hidden_act", ["gelu"]),
            ("position_embedding_type", "relative_key"),
            ("is_decoder", True),
            ("is_decoder", 0),
            ("add_cross_attention", True),
            ("tie_word_embeddings", "no"),
            ("pruned_heads", {"1": [0]}),
            ("layer_norm_eps", "tiny"),
            ("layer_norm_eps", 10**400),
            ("num_hidden_layers", "3"),
        )
    ),
    (
        *(BERT, FILLS, fields(auto_map={"AutoModelForMaskedLM": "modeling.Mine"})),
        "auto_map names the code modeling.Mine, which fillmask never runs and does not know",
    ),
    (BERT, FILLS, fields(hidden_size=32), r"config\.json: .*32"),
    (BERT, FILLS, fields(intermediate_size=None), r"config\.json: intermediate_size is missing"),
    (BERT, FILLS, fields(num_hidden_layers=HUGE), "num_layers must be"),
    (ALBERT, FILLS, fields(num_hidden_layers=HUGE), "num_hidden_layers must be"),
    (ALBERT, FILLS, fields(num_hidden_groups=4), "num_hidden_groups must be"),
    (ESM, FILLS, fields(pad_token_id=[]), "pad_token_id must be a whole number"),
    (
        *(MODERN, SEQUENCE, fields(rope_parameters=5)),
        r"config\.json: rope_parameters must be an object \(got 5\)",
    ),
    (
        *(MODERN, SEQUENCE, rope(full_attention=5)),
        r"config\.json: rope_parameters\.full_attention must be an object \(got 5\)",
    ),
    (
        *(MODERN, SEQUENCE, rope(rope_theta=10_000.0)),
        r"config\.json: rope_parameters may contain only full_attention and sliding_attention",
    ),
    (
        *(MODERN, SEQUENCE, rope(full_attention={"rope_theta": "10000"})),
        r"config\.json: rope_parameters\.full_attention\.rope_theta must be a number \(got",
    ),
    # labels
    (
        *(MODERN, SEQUENCE, fields(classifier_pooling="max")),
        r"config\.json: classifier_pooling must be cls or mean \(got 'max'\)",
    ),
    (
        *(BERT, SEQUENCE, labels({"0": "a", "1": "b", "2": "c"})),
        r"id2label .* 0 to 1, one for each row of classifier\.weight \(got \['0', '1', '2'\]\)",
    ),
    (
        *(BERT, SEQUENCE, labels(["a", "b"])),
        r"config\.json: id2label must be an object .* \(got \['a', 'b'\]\)",
    ),
    (
        *(BERT, SEQUENCE, labels({"0": "a", "1": ""})),
        r"config\.json: id2label must have a non-blank text at 1 \(got ''\)",
    ),
    (
        *(BERT, SEQUENCE, labels({"0": "1", "1": 1})),
        r"config\.json: id2label must have a different text at each key \(got '1' twice\)",
    ),
    (
        *(BERT, SEQUENCE, fields(id2label=None, num_labels=HUGE)),
        r"config\.json: num_labels must be 2, the number of rows of classifier\.weight \(got 10+\)",
    ),
    (
        *(BERT, SEQUENCE, no_labels_for_three_rows),
        r"num_labels must be 3, the number of rows of classifier\.weight \(got None\)",
    ),
    (
        *(BERT, SEQUENCE, fields(problem_type="ranking")),
        r"config\.json: problem_type must be one of .*regression \(got 'ranking'\)",
    ),
]


@pytest.mark.parametrize(
    ("name", "head", "damage", "message"), BROKEN, ids=[row[-1][:60] for row in BROKEN]
)
def test_what_is_wrong_is_named(
    name: str, head: str, damage: Damage, message: str, tmp_path: Path
) -> None:
    SAMPLES[name].make(head=head).save_pretrained(tmp_path)
    damage(tmp_path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)

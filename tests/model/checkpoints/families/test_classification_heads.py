"""Agreement of the classification heads of every family with transformers on the same weights.

The library transformers is the independent oracle. The tolerance is 1e-5 absolute on logits of
order 1. Every weight is random, so that a tensor in the wrong place changes the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, TextClassificationPipeline

from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.mapping.tensors import stored_name
from fillmask_model.checkpoints.registry import FAMILIES
from fillmask_model.checkpoints.tensor_files import TensorFiles
from tests.model.checkpoints.families.samples import SAMPLES, Inputs, Sample, reading_tokens
from tests.model.samples import (
    assert_same_weights,
    change_config,
    change_tensors,
    random_ids,
)
from tests.model.tokenizers.tokenizer_samples import TOKENIZER_JSON

TOLERANCE = 1e-5

LABELS = ["sport", "news", "science"]
SEQUENCE = "ForSequenceClassification"
NAMED: dict[str, Any] = {"id2label": dict(enumerate(LABELS))}
BERT = "BERT, three heads"
# transformers pools ModernBERT's first token by default
HEADS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, NAMED) for name in SAMPLES} | {
    "ModernBERT, mean": ("ModernBERT", NAMED | {"classifier_pooling": "mean"}),
    "ModernBERT, every bias, mean": (
        "ModernBERT, every bias",
        NAMED | {"classifier_pooling": "mean"},
    ),
}


def make(name: str, directory: Path, head: str = SEQUENCE, **changes: Any) -> Any:
    """Save a model of transformers and return the model."""
    model = SAMPLES[name].make(head=head, **changes)
    model.save_pretrained(directory)
    return model


@dataclass(frozen=True)
class Saved:
    """Checkpoint of a family with labels, as saved by transformers, which all tests share."""

    directory: Path
    sample: Sample
    theirs: Any


@pytest.fixture(scope="module", params=HEADS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    sample, changes = HEADS[request.param]
    directory = tmp_path_factory.mktemp("head")
    return Saved(directory, SAMPLES[sample], make(sample, directory, **changes))


def inputs_of(model: Any, sample: Sample, loaded: Checkpoint) -> dict[str, Tensor]:
    """Return padded texts with random token types, as arguments of transformers."""
    inputs = Inputs.of(model, sample, reading_tokens(model))
    arguments = {"input_ids": inputs.input_ids, "attention_mask": inputs.attention_mask}
    if types := loaded.model.config.type_vocab_size:
        arguments["token_type_ids"] = random_ids(tuple(inputs.input_ids.shape), types, seed=1)
    return arguments


@torch.inference_mode()
def test_logits_of_labels_equal_those_of_transformers(saved: Saved) -> None:
    theirs = saved.theirs
    loaded = load_checkpoint(saved.directory)
    assert loaded.tasks == ("text-classification",)
    assert loaded.head_is_new
    assert loaded.model.classifier is not None
    assert loaded.model.classifier.config.labels == tuple(LABELS)
    inputs = inputs_of(theirs, saved.sample, loaded)
    expected = theirs(**inputs).logits
    assert expected.std() > 0.05
    logits = loaded.model.classify(**inputs)
    torch.testing.assert_close(logits, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("head", ["ForNextSentencePrediction", "ForPreTraining"])
@pytest.mark.parametrize("name", [name for name in SAMPLES if name.startswith("BERT")])
@torch.inference_mode()
def test_next_sentence_logits_equal_those_of_transformers(
    name: str, head: str, tmp_path: Path
) -> None:
    # BertForPreTraining also fills masks.
    theirs = make(name, tmp_path, head)
    loaded = load_checkpoint(tmp_path)
    assert loaded.model.classifier is not None
    assert loaded.model.classifier.config.labels == ("is_next", "not_next")
    assert loaded.model.classifier.config.problem_type == "single_label_classification"
    inputs = inputs_of(theirs, SAMPLES[name], loaded)
    expected = theirs(**inputs)
    fills = head == "ForPreTraining"
    next_sentence = expected.seq_relationship_logits if fills else expected.logits
    logits = loaded.model.classify(**inputs)
    torch.testing.assert_close(logits, next_sentence, rtol=0, atol=TOLERANCE)
    assert loaded.tasks == ("fill-mask", "text-classification")[not fills :]
    if fills:
        masks = inputs["attention_mask"]
        found = loaded.model(mask_indicator=masks, **inputs)
        masked = expected.prediction_logits[masks > 0]
        torch.testing.assert_close(found, masked, rtol=0, atol=TOLERANCE)


def test_a_head_survives_saving_in_the_own_format(saved: Saved, tmp_path: Path) -> None:
    loaded = load_checkpoint(saved.directory)
    save_checkpoint(tmp_path / "ours", loaded.model, TOKENIZER_JSON)
    again = load_checkpoint(tmp_path / "ours")
    assert again.model.config == loaded.model.config
    assert again.model.classifier is not None
    assert loaded.model.classifier is not None
    assert again.model.classifier.config == loaded.model.classifier.config
    assert_same_weights(again.model, loaded.model)


def test_tensors_of_a_head_have_their_names_of_the_checkpoint(saved: Saved) -> None:
    # Error messages use the names in the checkpoint's file.
    mapping = FAMILIES[saved.theirs.config.model_type]
    family = mapping.with_classifier(mapping.classifiers[SEQUENCE])
    stored = {
        n.replace(".gamma", ".weight").replace(".beta", ".bias")
        for n in TensorFiles(saved.directory)
    }
    for ours in load_checkpoint(saved.directory).model.state_dict():
        if ours.startswith(("classifier.", "blocks.", "embeddings.")):
            assert stored_name(family, ours) in stored


@pytest.mark.parametrize(
    ("problem_type", "labels"),
    [
        (None, 1),
        (None, 2),
        (None, 3),
        ("regression", 1),
        ("regression", 2),
        ("multi_label_classification", 1),
        ("multi_label_classification", 3),
        ("single_label_classification", 2),
    ],
)
def test_the_problem_type_has_the_function_of_the_pipeline(
    problem_type: str | None, labels: int, tmp_path: Path
) -> None:
    # A single label without a problem type gets the sigmoid function.
    theirs = make(BERT, tmp_path, num_labels=labels, problem_type=problem_type)
    model = load_checkpoint(tmp_path).model
    assert model.classifier is not None
    config = model.classifier.config
    assert config.labels == tuple(f"LABEL_{i}" for i in range(labels))
    logits = np.linspace(-1, 2, labels)
    pipeline = object.__new__(TextClassificationPipeline)  # without a tokenizer
    pipeline.model = theirs
    scores = pipeline.postprocess(
        {"logits": torch.from_numpy(logits)[None]},
        top_k=None,
        _legacy=False,
    )
    expected = {
        "regression": logits,
        "multi_label_classification": 1 / (1 + np.exp(-logits)),
        "single_label_classification": np.exp(logits) / np.exp(logits).sum(),
    }[config.problem_type]
    found = {score["label"]: score["score"] for score in scores}
    np.testing.assert_allclose([found[label] for label in config.labels], expected, rtol=1e-6)


SHUFFLED = (10, 2, 1, 11, 0, 9, 3, 8, 4, 7, 5, 6)


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        (12, {"id2label": {str(i): f"label {i}" for i in SHUFFLED}}),
        (2, {"id2label": {" 1": 0.5, "00": True}}),
        (3, {"id2label": {"0": "a", "1": "b"}, "num_labels": 3}),
        (1, {"id2label": {"0": "a", "1": "b"}, "num_labels": 1}),
        (2, {"id2label": {}, "num_labels": 2}),
        (2, {"id2label": {"0": "a", "1": "b"}, "num_labels": 2, "label2id": {"b": 0}}),
        (2, {"label2id": {"a": 0, "b": 1}}),
        (2, {}),
    ],
)
def test_labels_have_the_names_that_transformers_gives(
    rows: int, fields: dict[str, Any], tmp_path: Path
) -> None:
    make(BERT, tmp_path, num_labels=rows)
    change_config(tmp_path, **{"id2label": None, "label2id": None, **fields})
    names = AutoConfig.from_pretrained(tmp_path).id2label
    model = load_checkpoint(tmp_path).model
    assert model.classifier is not None
    assert model.classifier.config.labels == tuple(str(names[row]) for row in range(rows))


def test_a_checkpoint_may_have_both_heads(tmp_path: Path) -> None:
    # The class names only the classification head, but the weights contain both heads.
    make(BERT, tmp_path / "fills", "ForMaskedLM")
    theirs = make(BERT, tmp_path, **NAMED)
    fills = TensorFiles(tmp_path / "fills")
    head = {name: fills[name] for name in fills if name.startswith("cls.")}
    change_tensors(tmp_path, lambda tensors: tensors.update(head))
    loaded = load_checkpoint(tmp_path)
    assert loaded.tasks == ("fill-mask", "text-classification")
    bias = theirs.state_dict()["classifier.bias"]
    assert torch.equal(loaded.model.state_dict()["classifier.output.bias"], bias)
    assert torch.equal(loaded.model.head_bias, head["cls.predictions.bias"])


@pytest.mark.parametrize("architectures", [["BertForMaskedLM"], ["BertModel"], [3], None])
def test_a_masked_language_model_ignores_the_next_sentence_head(
    architectures: Any, tmp_path: Path
) -> None:
    # Published checkpoints for masked language modelling often contain the next-sentence head.
    make(BERT, tmp_path, "ForPreTraining")
    change_config(tmp_path, architectures=architectures)
    loaded = load_checkpoint(tmp_path)
    assert loaded.tasks == ("fill-mask",)
    assert loaded.model.classifier is None


def test_a_head_ignores_an_unused_pooler(tmp_path: Path) -> None:
    # Checkpoints from older versions of transformers also contain RoBERTa's pooler.
    make("RoBERTa, one type", tmp_path, **NAMED)
    before = load_checkpoint(tmp_path).model.state_dict()["classifier.dense.weight"]
    pooler = {"roberta.pooler.dense.weight": torch.zeros(33, 33)}
    change_tensors(tmp_path, lambda tensors: tensors.update(pooler))
    after = load_checkpoint(tmp_path).model.state_dict()["classifier.dense.weight"]
    assert torch.equal(before, after)


def test_architectures_may_be_a_text(tmp_path: Path) -> None:
    make(BERT, tmp_path)
    change_config(tmp_path, architectures="BertForSequenceClassification")
    assert load_checkpoint(tmp_path).tasks == ("text-classification",)


def test_fields_of_published_classifiers_are_accepted(tmp_path: Path) -> None:
    # Older versions of transformers and other libraries write these fields.
    make("DistilBERT, three heads", tmp_path, **NAMED)
    change_config(
        tmp_path,
        _num_labels=5,
        tie_weights_=True,
        xla_device="cpu",
        eos_token_ids=[0],
        finetuning_task="sst-2",
        sbert_ce_default_activation_function="torch.nn.modules.linear.Identity",
        sentence_transformers={"activation_fn": "torch.nn.modules.linear.Identity"},
    )
    model = load_checkpoint(tmp_path).model
    assert model.classifier is not None
    assert model.classifier.config.labels == tuple(LABELS)

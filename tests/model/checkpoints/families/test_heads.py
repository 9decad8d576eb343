"""Labels of classification heads: names, functions, and which checkpoint has which head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, TextClassificationPipeline

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.tensor_files import TensorFiles
from tests.model.checkpoints.families.samples import SAMPLES
from tests.model.samples import change_config, change_tensors

BERT, TABLE = "BERT, three heads", "bert.embeddings.word_embeddings.weight"
SHUFFLED = (10, 2, 1, 11, 0, 9, 3, 8, 4, 7, 5, 6)


def make(
    directory: Path, name: str = BERT, head: str = "ForSequenceClassification", **changes: Any
) -> Any:
    """Save a model of transformers and return the model."""
    model = SAMPLES[name].make(head=head, **changes)
    model.save_pretrained(directory)
    return model


@pytest.mark.parametrize(
    ("problem_type", "labels"),
    [
        (None, 1),
        (None, 2),
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
    theirs = make(tmp_path, num_labels=labels, problem_type=problem_type)
    model = load_checkpoint(tmp_path).model
    assert model.classifier is not None
    config = model.classifier.config
    assert config.labels == tuple(f"LABEL_{i}" for i in range(labels))
    logits = np.linspace(-1, 2, labels)
    pipeline = object.__new__(TextClassificationPipeline)  # without a tokenizer
    pipeline.model = theirs
    outputs = {"logits": torch.from_numpy(logits)[None]}
    scores = pipeline.postprocess(outputs, top_k=None, _legacy=False)
    expected = {
        "regression": logits,
        "multi_label_classification": 1 / (1 + np.exp(-logits)),
        "single_label_classification": np.exp(logits) / np.exp(logits).sum(),
    }[config.problem_type]
    found = {score["label"]: score["score"] for score in scores}
    np.testing.assert_allclose([found[label] for label in config.labels], expected, rtol=1e-6)


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
    make(tmp_path, num_labels=rows)
    change_config(tmp_path, **{"id2label": None, "label2id": None, **fields})
    names = AutoConfig.from_pretrained(tmp_path).id2label
    model = load_checkpoint(tmp_path).model
    assert model.classifier is not None
    assert model.classifier.config.labels == tuple(str(names[row]) for row in range(rows))


def test_a_checkpoint_may_have_both_heads(tmp_path: Path) -> None:
    # The class names only the classification head, but the weights contain both heads.
    make(tmp_path / "fills", head="ForMaskedLM")
    theirs = make(tmp_path)
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
    make(tmp_path, head="ForPreTraining")
    change_config(tmp_path, architectures=architectures)
    loaded = load_checkpoint(tmp_path)
    assert loaded.tasks == ("fill-mask",)
    assert loaded.model.classifier is None


def test_old_names_are_read(tmp_path: Path) -> None:
    # Layer norms have TensorFlow's names, gamma and beta. A tied decoder may be stored twice. The
    # encoder ignores unused tensors.
    make(tmp_path, head="ForMaskedLM")
    before = load_checkpoint(tmp_path).model.state_dict()

    def age(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if "LayerNorm" in name]:
            kind = "gamma" if name.endswith("weight") else "beta"
            tensors[f"{name.rpartition('.')[0]}.{kind}"] = tensors.pop(name)
        tensors["bert.embeddings.position_ids"] = torch.arange(19)[None]
        tensors["bert.pooler.dense.weight"] = torch.zeros(33, 33)
        tensors["cls.seq_relationship.weight"] = torch.zeros(2, 33)
        tensors["cls.predictions.decoder.weight"] = tensors[TABLE].clone()
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()

    change_tensors(tmp_path, age)
    after = load_checkpoint(tmp_path).model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_published_classifiers_are_accepted(tmp_path: Path) -> None:
    # Older versions of transformers and other libraries write these fields and RoBERTa's pooler.
    make(tmp_path, "RoBERTa, one type")
    before = load_checkpoint(tmp_path).model.state_dict()["classifier.dense.weight"]
    pooler = {"roberta.pooler.dense.weight": torch.zeros(33, 33)}
    change_tensors(tmp_path, lambda tensors: tensors.update(pooler))
    architecture = "RobertaForSequenceClassification"
    change_config(tmp_path, architectures=architecture, _num_labels=5, eos_token_ids=[0])
    loaded = load_checkpoint(tmp_path)
    assert loaded.tasks == ("text-classification",)
    assert torch.equal(before, loaded.model.state_dict()["classifier.dense.weight"])

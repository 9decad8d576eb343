"""Encoders of every family in PyTorch, compared with transformers.

A row is a sample and a head. Every weight is random, so that a tensor in the wrong place changes
the result. tests/export/graph compares both graphs with PyTorch. tests/published has the families
that transformers only reads after a translation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.mapping.tensors import stored_name
from fillmask_model.checkpoints.registry import FAMILIES
from fillmask_model.checkpoints.tensor_files import TensorFiles
from fillmask_model.encoder.empty import count_parameters
from fillmask_model.encoder.encoder import TABLE
from tests.model.checkpoints.families.samples import SAMPLES, TRANSLATED, Inputs, reading_tokens
from tests.model.samples import assert_same_weights, change_tensors, random_ids
from tests.model.tokenizers.tokenizer_samples import TOKENIZER_JSON

TOLERANCE = 1e-4  # log-probabilities in nats, hidden states and logits, fp32
FILLS, LABELS = "ForMaskedLM", "ForSequenceClassification"
NEXT, BOTH = "ForNextSentencePrediction", "ForPreTraining"
NAMED: dict[str, Any] = {"id2label": {0: "sport", 1: "news", 2: "science"}}
BERTS = [name for name in SAMPLES if name.startswith("BERT")]
# sample, head and changed fields
LABEL_ROWS = [
    *((name, LABELS, NAMED) for name in SAMPLES),
    # transformers pools ModernBERT's first token by default
    ("ModernBERT", LABELS, NAMED | {"classifier_pooling": "mean"}),
    ("ModernBERT, every bias", LABELS, NAMED | {"classifier_pooling": "mean"}),
    *((name, head, {}) for name in BERTS for head in (NEXT, BOTH)),
]


@dataclass(frozen=True, slots=True)
class Case:
    """Checkpoint as transformers saves it, read by fillmask, and padded texts for both.

    Attributes:
        arguments: texts for both models, with token types if the model has any.
    """

    directory: Path
    theirs: Any
    ours: Checkpoint
    inputs: Inputs

    @property
    def arguments(self) -> dict[str, Tensor]:
        ids, mask = self.inputs.input_ids, self.inputs.attention_mask
        arguments = {"input_ids": ids, "attention_mask": mask}
        if types := self.ours.model.config.type_vocab_size:
            arguments["token_type_ids"] = random_ids(tuple(ids.shape), types, seed=1)
        return arguments


def make(directory: Path, name: str, head: str = FILLS, **fields: Any) -> Case:
    theirs = SAMPLES[name].make(head=head, **fields)
    theirs.save_pretrained(directory)
    inputs = Inputs.of(theirs, SAMPLES[name], reading_tokens(theirs))
    return Case(directory, theirs, load_checkpoint(directory), inputs)


@pytest.fixture(scope="module")
def case_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """Function that saves and reads a checkpoint that fills masks, once for all tests."""
    return cache(lambda name: make(tmp_path_factory.mktemp("family"), name))


def stored(case: Case) -> set[str]:
    """Return the names of the tensors in the file."""
    # transformers saves ESM's norms under old names of TensorFlow
    old = {".gamma": ".weight", ".beta": ".bias"}
    names = set(TensorFiles(case.directory))
    for before, after in old.items():
        names = {name.replace(before, after) for name in names}
    return names


@pytest.mark.parametrize("name", SAMPLES)
@torch.inference_mode()
def test_fills(name: str, case_of: Callable[[str], Case]) -> None:
    # The texts have the model's maximum length or contain padding. The parameters are counted from
    # the configuration, and tensors have their names of the checkpoint, for error messages.
    case = case_of(name)
    loaded, indicator = case.ours, case.inputs.mask_indicator
    assert not loaded.head_is_new
    assert loaded.model.config.max_positions == reading_tokens(case.theirs)
    expected = torch.log_softmax(case.theirs(**case.arguments).logits[indicator > 0], -1)
    assert expected.std() > 0.3
    logits = loaded.model(mask_indicator=indicator, **case.arguments)
    torch.testing.assert_close(torch.log_softmax(logits, -1), expected, rtol=0, atol=TOLERANCE)
    parameters = sum(parameter.numel() for parameter in loaded.model.parameters())
    table = 0 if loaded.model.config.tied else loaded.model.output_projection().numel()
    assert count_parameters(loaded.model.config).tied == parameters - table
    family = FAMILIES[case.theirs.config.model_type]
    # tensors that a mapping adds are zero
    tensors = loaded.model.state_dict().items()
    assert {stored_name(family, ours) for ours, tensor in tensors if tensor.any()} <= stored(case)


@pytest.mark.parametrize(("name", "head", "fields"), LABEL_ROWS)
@torch.inference_mode()
def test_labels(name: str, head: str, fields: dict[str, Any], tmp_path: Path) -> None:
    # BertForPreTraining also fills masks. A head survives our own format.
    case = make(tmp_path / "theirs", name, head, **fields)
    loaded, both = case.ours, head == BOTH
    assert loaded.tasks == ("fill-mask", "text-classification")[not both :]
    assert loaded.head_is_new != both
    assert loaded.model.classifier is not None
    config = loaded.model.classifier.config
    names = ("sport", "news", "science") if head == LABELS else ("is_next", "not_next")
    assert (config.labels, config.problem_type) == (names, "single_label_classification")
    outputs = case.theirs(**case.arguments)
    expected = outputs.seq_relationship_logits if both else outputs.logits
    assert expected.std() > 0.05
    logits = loaded.model.classify(**case.arguments)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    if both:
        masks = case.inputs.attention_mask
        found = loaded.model(mask_indicator=masks, **case.arguments)
        masked = outputs.prediction_logits[masks > 0]
        torch.testing.assert_close(found, masked, rtol=0, atol=TOLERANCE)
    if head != LABELS:
        return
    mapping = FAMILIES[case.theirs.config.model_type]
    family = mapping.with_classifier(mapping.classifiers[LABELS])
    for ours in loaded.model.state_dict():
        if ours.startswith(("classifier.", "blocks.", "embeddings.")):
            assert stored_name(family, ours) in stored(case)
    save_checkpoint(tmp_path / "ours", loaded.model, TOKENIZER_JSON)
    again = load_checkpoint(tmp_path / "ours").model
    assert again.config == loaded.model.config
    assert again.classifier is not None
    assert again.classifier.config == config
    assert_same_weights(again, loaded.model)


def test_each_family_has_two_samples(case_of: Callable[[str], Case]) -> None:
    kinds = [case_of(name).theirs.config.model_type for name in SAMPLES]
    assert set(kinds) == set(FAMILIES) - TRANSLATED
    assert all(kinds.count(kind) >= 2 for kind in kinds)


@pytest.mark.parametrize("name", ["BERT, three heads", "ESM-1b", "ModernBERT", "UltraBERT"])
def test_a_wrapped_model_with_other_heads_is_read(name: str, tmp_path: Path) -> None:
    # Its tied table is only at the head.
    wrapper = "net.model.module._orig_mod."
    theirs = SAMPLES[name].make()
    theirs.save_pretrained(tmp_path)
    before = load_checkpoint(tmp_path)
    family = FAMILIES[theirs.config.model_type]

    def publish(tensors: dict[str, Tensor]) -> None:
        if before.model.config.tied:
            tensors[f"{family.decoder}.weight"] = tensors.pop(stored_name(family, TABLE))
        tensors |= {"cls.species.bias": torch.zeros(6), "n_averaged": torch.tensor(3)}
        tensors[f"{family.prefix}pooler.dense\n.bias"] = torch.zeros(3)
        for one in list(tensors):
            tensors[wrapper + one] = tensors.pop(one)

    change_tensors(tmp_path, publish)
    after = load_checkpoint(tmp_path)
    assert_same_weights(after.model, before.model)
    wrapped, ignored = after.notes
    assert f" tensors without their wrapper, such as {wrapper}" in wrapped
    for one in ("cls.species.bias", "n_averaged", rf"{family.prefix}pooler.dense\n.bias"):
        assert one in ignored

"""Accepted and rejected names and values in BERT checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from tests.model.checkpoints.families.samples import SAMPLES
from tests.model.samples import change_config, change_tensors

TABLE = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Directory of a small BERT that a test may damage."""
    SAMPLES["BERT, three heads"].make().save_pretrained(tmp_path)
    return tmp_path


def test_old_names_are_read(directory: Path) -> None:
    # Layer norms have TensorFlow's names, gamma and beta. The encoder ignores unused tensors.
    before = load_checkpoint(directory).model.state_dict()

    def age(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if "LayerNorm" in name]:
            kind = "gamma" if name.endswith("weight") else "beta"
            tensors[f"{name.rpartition('.')[0]}.{kind}"] = tensors.pop(name)
        tensors["bert.embeddings.position_ids"] = torch.arange(19)[None]
        tensors["bert.pooler.dense.weight"] = torch.zeros(33, 33)
        tensors["cls.seq_relationship.weight"] = torch.zeros(2, 33)

    change_tensors(directory, age)
    after = load_checkpoint(directory).model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_a_tied_decoder_may_be_stored_twice(directory: Path) -> None:
    def store_twice(tensors: dict[str, Tensor]) -> None:
        tensors["cls.predictions.decoder.weight"] = tensors[TABLE].clone()
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()

    change_tensors(directory, store_twice)
    model = load_checkpoint(directory).model
    assert torch.equal(
        model.embeddings.word.weight, load_file(directory / "model.safetensors")[TABLE]
    )


def untie(tensors: dict[str, Tensor]) -> None:
    """Add an output projection that differs from the embedding table."""
    tensors["cls.predictions.decoder.weight"] = tensors[TABLE] + 1e-3


def repeat(tensors: dict[str, Tensor]) -> None:
    """Add a tensor under a second name with other values."""
    tensors["embeddings.word_embeddings.weight"] = tensors[TABLE] + 1


BAD_TENSORS: dict[str, tuple[Callable[[dict[str, Tensor]], Any], str]] = {
    "an untied decoder": (
        untie,
        r"cls\.predictions\.decoder\.weight must be equal to the tied embedding table",
    ),
    "tensors of another model": (
        lambda t: t.update({"bert.adapter.weight": torch.zeros(1), "classifier": torch.zeros(1)}),
        r"the checkpoint must have only known tensors \(unknown: bert\.adapter\.weight\); remove",
    ),
    "gated layers": (
        lambda t: t.update({"bert.encoder.layer.0.mlp.gated_layers.weight": torch.zeros(1)}),
        r"unknown: bert\.encoder\.layer\.0\.mlp\.gated_layers\.weight",
    ),
    "a layer of the head": (
        lambda t: t.update({"cls.predictions.gate.weight": torch.zeros(1)}),
        r"unknown: cls\.predictions\.gate\.weight\)",
    ),
    "a wrapped model beside another module": (
        lambda t: [t.update({f"model.{name}": t.pop(name)}) for name in list(t)[1:]],
        r"unknown: model\.bert.*; remove the prefix model\. from the names of the tensors",
    ),
    "a wrapped and a plain model": (
        lambda t: t.update({f"module.{name}": tensor.clone() for name, tensor in t.items()}),
        r"module\.(.*) and \1 are the same tensor; remove one of them",
    ),
    "a block too many": (
        lambda t: t.update({"bert.encoder.layer.3.output.dense.bias": torch.zeros(33)}),
        r"the checkpoint must have only known tensors \(unknown: bert\.encoder\.layer\.3\.output",
    ),
    "half a head": (
        lambda t: [t.pop("cls.predictions.bias"), t.pop("cls.predictions.transform.dense.bias")],
        r"\(missing: cls\.predictions\.transform\.dense\.bias, cls\.predictions\.bias",
    ),
    "a projection missing": (
        lambda t: t.pop("bert.encoder.layer.1.attention.self.key.weight"),
        r"\(missing: bert\.encoder\.layer\.1\.attention\.self\.key\.weight",
    ),
    "a table too small": (
        lambda t: t.update({TABLE: torch.zeros(96, 33)}),
        r"bert\..*\.weight must have the shape \(97, 33\) \(got \(96, 33\)\)",
    ),
    "a tensor under two names": (repeat, r"embeddings\.word_embeddings\.weight"),
}


@pytest.mark.parametrize(("change", "message"), BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_wrong_tensors_are_listed(
    directory: Path, change: Callable[[dict[str, Tensor]], Any], message: str
) -> None:
    change_tensors(directory, change)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(directory)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_act", "mish"),
        ("hidden_act", ["gelu"]),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("tie_word_embeddings", "no"),
        ("pruned_heads", {"1": [0]}),
        ("is_decoder", 0),
        ("hidden_size", 32),
        ("layer_norm_eps", "tiny"),
        ("layer_norm_eps", 10**400),
        ("num_hidden_layers", "3"),
    ],
)
def test_a_value_that_changes_the_maths_is_refused(directory: Path, field: str, value: Any) -> None:
    # The error names the file and the value.
    change_config(directory, **{field: value})
    shown = str(value) if field == "hidden_size" else repr(value)
    with pytest.raises(CheckpointError, match=rf"config\.json: .*{re.escape(shown)}"):
        load_checkpoint(directory)


def test_a_missing_size_is_named(directory: Path) -> None:
    change_config(directory, intermediate_size=None)
    with pytest.raises(CheckpointError, match=r"config\.json: intermediate_size is missing"):
        load_checkpoint(directory)

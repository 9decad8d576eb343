"""Settings of sparse encoders in the files of Sentence Transformers, in their published forms.

tests/parity/test_sparse.py reads the files that Sentence Transformers itself writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.checkpoints.sentence_transformers import (
    SparseModules,
    read_max_length,
    read_modules,
    with_sparse_settings,
)
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling, SparseSettings
from tests.model.samples import small_config, verse_tokenizer
from tests.model.tokenizers.tokenizer_directories import minilm_directory

# as in opensearch-neural-sparse-encoding-doc-v3-distill
TYPES = "sentence_transformers.sparse_encoder.models"
ROUTER: dict[str, Any] = {
    "types": {
        "query_0_SparseStaticEmbedding": f"{TYPES}.SparseStaticEmbedding.SparseStaticEmbedding",
        "": f"{TYPES}.MLMTransformer.MLMTransformer",
        "document_1_SpladePooling": f"{TYPES}.SpladePooling.SpladePooling",
    },
    "structure": {
        "query": ["query_0_SparseStaticEmbedding"],
        "document": ["", "document_1_SpladePooling"],
    },
    "parameters": {"default_route": "document", "allow_empty_key": True},
}
STATIC = "query_0_SparseStaticEmbedding"


def write(directory: Path, name: str, content: object) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def module(kind: str, path: str = "") -> dict[str, Any]:
    return {"path": path, "type": f"sentence_transformers.models.{kind}"}


def write_router(directory: Path, router: object = ROUTER) -> Path:
    write(directory, "modules.json", [module("Router")])
    write(directory, "router_config.json", router)
    return directory


def read(directory: Path, *, modules: bool = True) -> SparseSettings:
    tokenizer = verse_tokenizer()
    model = TiedEncoder(small_config(vocab_size=tokenizer.get_vocab_size() + 3))
    checkpoint = Checkpoint(model, tokenizer.to_str().encode(), head_is_new=False)
    found = read_modules(directory) if modules else None
    settings = with_sparse_settings(checkpoint, directory, found).sparse
    assert settings is not None
    return settings


def test_rows_without_a_token_have_no_weight(tmp_path: Path) -> None:
    # The published table of weights is shorter than that of the embeddings.
    write_router(tmp_path)
    write(tmp_path, "document_1_SpladePooling/config.json", {})
    (tmp_path / STATIC).mkdir()
    weight = torch.ones(verse_tokenizer().get_vocab_size())
    save_file({"weight": weight}, tmp_path / STATIC / "model.safetensors")
    weights = read(tmp_path).query_weights
    assert weights is not None
    assert weights[len(weight) :] == [0.0] * 3


def test_one_encoder_may_read_queries_and_documents(tmp_path: Path) -> None:
    structure = {"query": ["", "p"], "document": ["", "p"]}
    types = {"": f"{TYPES}.MLMTransformer", "p": f"{TYPES}.SpladePooling"}
    write_router(tmp_path, {"types": types, "structure": structure})
    write(tmp_path, "p/config.json", {})
    write(tmp_path, "config_sentence_transformers.json", {"max_active_dims": 64, "prompts": {}})
    assert read(tmp_path) == SparseSettings(SparsePooling(), 64, None)


def _two_encoders() -> dict[str, Any]:
    types = {**ROUTER["types"], "query_0_MLMTransformer": f"{TYPES}.MLMTransformer"}
    structure = {**ROUTER["structure"], "query": ["query_0_MLMTransformer"]}
    return {"types": types, "structure": structure}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("router_config.json", {}, "must have types, and structure with query and document"),
        (
            "router_config.json",
            {"types": {"../x": "a"}, "structure": {"query": ["../x"], "document": []}},
            "must have types, and structure",
        ),
        ("router_config.json", _two_encoders(), "export each encoder with a modules.json of its"),
        (
            "router_config.json",
            {**ROUTER, "structure": {"query": [STATIC], "document": [""]}},
            r"documents must have an encoder and SpladePooling \(got MLMTransformer\)",
        ),
        ("modules.json", [], "must be a list of modules"),
        ("modules.json", {"type": "x"}, "must be a list of modules"),
        ("modules.json", [{"type": "x"}], "must be a list of modules"),
        ("modules.json", [module("Transformer", "0_T")], "in 0_T; name this directory"),
        ("modules.json", [module("Transformer"), module("Dense")], "lists Dense of Sentence"),
    ],
)
def test_other_modules_are_refused(tmp_path: Path, name: str, content: object, reason: str) -> None:
    write(write_router(tmp_path), name, content)
    with pytest.raises(ValueError, match=reason):
        read_modules(tmp_path)


def test_a_published_model_of_sentence_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"modules\.json lists Pooling, Normalize of Sentence"):
        read_modules(minilm_directory())


def test_lower_case_outside_the_tokenizer_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sentence_bert_config.json"
    assert read_max_length(file) is None
    write(tmp_path, file.name, {"do_lower_case": True})
    with pytest.raises(ValueError, match="do_lower_case must be false"):
        read_max_length(file)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("p/config.json", {"pooling_strategy": "mean"}, r"must be max or sum \(got 'mean'\)"),
        ("p/config.json", {"activation_function": ["relu"]}, "must be relu or log1p_relu"),
        ("p/config.json", [], "must contain a JSON object"),
        (
            "config_sentence_transformers.json",
            {"prompts": {"query": "query: ", "document": ""}},
            "prompts must be empty",
        ),
        ("config_sentence_transformers.json", {"max_active_dims": 0}, "max_active_dims must be"),
    ],
)
def test_an_unknown_setting_is_refused(
    tmp_path: Path, name: str, content: object, reason: str
) -> None:
    write(tmp_path, "modules.json", [module("MLMTransformer"), module("SpladePooling", "p")])
    assert read_modules(tmp_path) == SparseModules("", "p")
    write(tmp_path, "p/config.json", {})
    write(tmp_path, name, content)
    with pytest.raises(CheckpointError, match=reason):
        read(tmp_path)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"cat": -1}, r"a weight must be a number of at least 0 \(got -1\)"),
        ({"cat": "1"}, "a weight must be a number"),
        ({"cat": float("nan")}, "a weight must be a number"),
        ({"no such token": 1}, "'no such token', which is not a token of the model"),
    ],
)
def test_a_broken_table_is_refused(tmp_path: Path, table: dict[str, object], reason: str) -> None:
    write(tmp_path, "idf.json", table)
    with pytest.raises(CheckpointError, match=reason):
        read(tmp_path, modules=False)


def test_broken_weights_are_refused(tmp_path: Path) -> None:
    write_router(tmp_path)
    write(tmp_path, "document_1_SpladePooling/config.json", {})
    with pytest.raises(CheckpointError, match=r"idf\.json does not exist"):
        read(tmp_path)
    (tmp_path / STATIC).mkdir()
    file = tmp_path / STATIC / "model.safetensors"
    file.write_bytes(b"x" * 99)
    with pytest.raises(CheckpointError, match="is not a valid safetensors file"):
        read(tmp_path)
    for tensors in ({"weight": torch.ones(10_000)}, {"w": torch.ones(3)}):
        save_file(tensors, file)
        with pytest.raises(CheckpointError, match="must have the tensor weight of shape"):
            read(tmp_path)

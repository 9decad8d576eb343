"""Sparse encoders from an id: the files beside the encoder, and an encoder in a folder."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from fillmask.bundles.bundle import read_bundle
from fillmask_export.source import Source, load_source
from tests.export.hub.commands import download, export
from tests.export.hub.local_hub import LocalHub

STATIC, POOLING = "query_0_SparseStaticEmbedding", "document_1_SpladePooling"


def write(directory: Path, name: str, content: object) -> None:
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def write_router(directory: Path, encoder: str) -> None:
    """Turn a checkpoint into a sparse encoder with weights of queries."""
    write(directory, "modules.json", [{"path": "", "type": "sentence_transformers.models.Router"}])
    classes = {STATIC: "SparseStaticEmbedding", encoder: "MLMTransformer", POOLING: "SpladePooling"}
    router = {
        "types": {folder: f"x.{name}.{name}" for folder, name in classes.items()},
        "structure": {"query": [STATIC], "document": [encoder, POOLING]},
    }
    write(directory, "router_config.json", router)
    write(directory, f"{POOLING}/config.json", {"activation_function": "log1p_relu"})
    write(directory, "config_sentence_transformers.json", {"max_active_dims": 40})
    write(directory, f"{STATIC}/config.json", {"frozen": True})
    words = len(json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"])
    save_file({"weight": torch.ones(words)}, directory / STATIC / "model.safetensors")
    if encoder:
        (directory / encoder).mkdir()
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
            shutil.move(directory / file, directory / encoder / file)


@pytest.mark.parametrize("encoder", ["", "document_0_MLMTransformer"])
def test_an_id_becomes_a_bundle_with_weights_of_queries(
    hub: LocalHub,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    encoder: str,
) -> None:
    write_router(directory, encoder)
    assert export(tmp_path, "--output", str(tmp_path / "bundle")) == 0
    bundle = read_bundle(tmp_path / "bundle")
    assert bundle.sparse is not None
    assert (bundle.sparse.activation, bundle.sparse.max_active_dims) == ("log1p_relu", 40)
    assert bundle.sparse.query_weights is not None
    downloaded = hub.files()
    assert not downloaded & {"vocab.txt", "tf_model.h5", "README.md"}
    # offline, the cache has every file
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    snapshot = download()
    assert (snapshot.directory / encoder / "model.safetensors").is_file()
    again = tmp_path / "again"
    assert export(tmp_path, "--output", str(again)) == 0
    assert read_bundle(again).files.model == bundle.files.model


@pytest.mark.parametrize(("task", "sparse"), [(None, True), ("sparse", True), ("fill-mask", False)])
def test_the_task_of_the_user_wins_over_the_modules(
    directory: Path, task: str | None, *, sparse: bool
) -> None:
    write_router(directory, "")
    options = argparse.Namespace(checkpoint=str(directory), task=task)
    assert (load_source(options, Source(directory, None)).sparse is not None) is sparse


def test_a_plain_checkpoint_may_have_a_table(
    hub: LocalHub, directory: Path, tmp_path: Path
) -> None:
    word = list(json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"])[-1]
    write(directory, "idf.json", {word: 2.5})
    output = tmp_path / "bundle"
    assert export(tmp_path, "--task", "sparse", "--output", str(output)) == 0
    sparse = read_bundle(output).sparse
    assert sparse is not None
    assert max(sparse.query_weights or ()) == 2.5
    assert "idf.json" in hub.files()


def test_other_modules_end_before_the_weights(
    hub: LocalHub, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]
    write(directory, "modules.json", modules)
    assert export(tmp_path, "--output", str(tmp_path / "bundle")) == 2
    assert "lists Pooling of Sentence Transformers" in capsys.readouterr().err
    assert "model.safetensors" not in hub.files()

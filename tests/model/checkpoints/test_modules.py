"""Sentence Transformers' files beside a checkpoint, in their published forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fillmask_model.checkpoints.modules import SparseModules, read_max_length, read_modules
from tests.model.tokenizers.tokenizer_directories import minilm_directory


def module(kind: str, path: str = "", idx: int = 0) -> dict[str, Any]:
    return {"idx": idx, "name": str(idx), "path": path, "type": f"sentence_transformers.{kind}"}


SPLADE = [
    module("sparse_encoder.models.MLMTransformer"),
    module("sparse_encoder.models.SpladePooling", "1_SpladePooling", 1),
]


def write(directory: Path, modules: object) -> Path:
    (directory / "modules.json").write_text(json.dumps(modules))
    return directory


def test_a_sparse_encoder_is_read(tmp_path: Path) -> None:
    found = read_modules(write(tmp_path, SPLADE))
    assert found == SparseModules("", "1_SpladePooling")


def test_a_published_model_of_sentence_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"modules\.json lists Pooling, Normalize of Sentence"):
        read_modules(minilm_directory())


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ([], "must be a list of modules"),
        ({"type": "x"}, "must be a list of modules"),
        ([{"type": "x"}], "must be a list of modules"),
        ([module("models.Transformer", "0_Transformer")], "in 0_Transformer; name this directory"),
        ([module("models.Transformer"), module("models.Dense")], "lists Dense of Sentence"),
    ],
)
def test_another_list_is_refused(modules: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        read_modules(write(tmp_path, modules))


def test_lower_case_outside_the_tokenizer_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sentence_bert_config.json"
    read_max_length(file)
    file.write_text('{"do_lower_case": true}')
    with pytest.raises(ValueError, match="do_lower_case must be false"):
        read_max_length(file)

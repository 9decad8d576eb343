"""Services of small random checkpoints, with the same checkpoints in transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from fillmask_export.commands import main as export_main
from tests.model.tokenizers.tokenizer_directories import KINDS, write_directory
from tests.test_pipeline_parity import make_model

TOLERANCE = 1e-4  # scores, fp32 bundle against transformers on the same weights
TEXTS = ("The capital of France is Paris.", "She drank a cup of tea.", "Rome is old!")


@dataclass(frozen=True)
class Served:
    """Service of a bundle with the bundle's checkpoint in transformers.

    Attributes:
        directory: directory of the checkpoint.
        model: the checkpoint as a model of transformers.
        tokenizer: the checkpoint's tokenizer in transformers.
    """

    client: TestClient
    directory: Path
    model: Any
    tokenizer: Any

    def encode(self, text: str, text_pair: str) -> Any:
        """Return a pair as tensors of transformers."""
        return self.tokenizer(text, text_pair, return_tensors="pt")

    def post(self, path: str, inputs: object, **parameters: Any) -> Any:
        """Return the response to a request, which must succeed."""
        body = {"inputs": inputs, "parameters": parameters}
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


def write_checkpoint(directory: Path, name: str, head: str, **changes: Any) -> Any:
    """Write a random checkpoint of a kind and return its model."""
    kind = KINDS[name]
    write_directory(directory, kind, fast=not kind.slow_only)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = make_model(kind.model_type, tokenizer, head, **changes)
    model.save_pretrained(directory)
    return model


def export(directory: Path, bundle: Path, *arguments: str) -> Path:
    """Run `fillmask-export` on a checkpoint and return the directory of the bundle."""
    texts = directory / "texts.txt"
    texts.write_text("\n".join(TEXTS))
    command = [str(directory), "--output", str(bundle), "--texts", str(texts), *arguments]
    assert export_main(command) == 0
    return bundle


@contextmanager
def serve(scratch: Path, name: str, head: str, **changes: Any) -> Iterator[Served]:
    """Serve a random checkpoint of a kind, exported in fp32.

    Args:
        scratch: empty directory for the checkpoint and the bundle.
        name: key of KINDS, which determines the tokenizer and the family.
        head: suffix of the class name in transformers, such as "ForMaskedLM".
        changes: fields that replace those of the model's configuration.
    """
    torch.set_num_threads(1)  # small tensors are slower on several threads
    directory = scratch / "checkpoint"
    model = write_checkpoint(directory, name, head, **changes)
    bundle = export(directory, scratch / "bundle")
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    with TestClient(create_app(Settings(bundle=bundle, threads=2))) as client:
        yield Served(client, directory, model, tokenizer)

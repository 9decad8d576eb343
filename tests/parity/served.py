"""Services of small random checkpoints, with the same checkpoints in transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fastapi.testclient import TestClient
from torch import Tensor

from fillmask.app import create_app
from fillmask.settings import Settings
from fillmask_export.bundle import reading
from fillmask_export.commands import main as export_main
from tests.model.samples import randomise
from tests.model.tokenizers.tokenizer_directories import KINDS, write_directory

TOLERANCE = 1e-4  # scores, fp32 bundle against transformers on the same weights
TEXTS = ("The capital of France is Paris.", "She drank a cup of tea.", "Rome is old!")
# kinds of tokenizers that test_tokenizers.py does not send through the export
UNEXPORTED = {"MPNet", "DNABERT", "ModernBERT", "CamemBERT", "ESM-2"}
CLASSES = {
    "albert": "Albert",
    "bert": "Bert",
    "camembert": "Camembert",
    "distilbert": "DistilBert",
    "electra": "Electra",
    "esm": "Esm",
    "modernbert": "ModernBert",
    "mpnet": "MPNet",
    "roberta": "Roberta",
    "xlm-roberta": "XLMRoberta",
}


@dataclass(frozen=True)
class Served:
    """Service of a bundle with the bundle's checkpoint in transformers.

    Attributes:
        kind: key of KINDS.
        model: the checkpoint as a model of transformers.
        tokenizer: the checkpoint's tokenizer in transformers.
    """

    kind: str
    client: TestClient
    bundle: Path
    model: Any
    tokenizer: Any

    def post(self, path: str, inputs: object, **parameters: Any) -> Any:
        """Return the response to a request, which must succeed."""
        body = {"inputs": inputs, "parameters": parameters}
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def encode(self, *texts: str, **options: Any) -> Any:
        """Return a text or a pair as tensors of transformers."""
        return self.tokenizer(*texts, return_tensors="pt", **options)

    @torch.inference_mode()
    def logits(self, *texts: str, **options: Any) -> Tensor:
        """Return the logits of a text or a pair, without the dimension of the batch."""
        logits: Tensor = self.model(**self.encode(*texts, **options)).logits[0]
        return logits

    @torch.inference_mode()
    def log_probs(self, encoded: Any, hidden: Sequence[Sequence[int]] = ((),)) -> Tensor:
        """Return the log-probabilities (N, T, V) of N copies of an input.

        Args:
            hidden: positions of further masks by copy.
        """
        copies = {name: values.repeat(len(hidden), 1) for name, values in encoded.items()}
        for row, positions in zip(copies["input_ids"], hidden, strict=True):
            row[list(positions)] = self.tokenizer.mask_token_id
        return torch.log_softmax(self.model(**copies).logits, -1)

    def mask_positions(self, encoded: Any) -> list[int]:
        ids = encoded["input_ids"][0].tolist()
        return [i for i, token in enumerate(ids) if token == self.tokenizer.mask_token_id]


def write_checkpoint(directory: Path, name: str, head: str, **changes: Any) -> Any:
    """Write a small random checkpoint and return its model.

    Args:
        name: key of KINDS, which determines the tokenizer and the family.
        head: suffix of the class name in transformers, such as "ForMaskedLM".
        changes: fields that replace those of the configuration.
    """
    kind = KINDS[name]
    write_directory(directory, kind, fast=not kind.slow_only)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    fields: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 36,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 50,
        "max_position_embeddings": 70,
        "pad_token_id": tokenizer.pad_token_id,
        "mask_token_id": tokenizer.mask_token_id,
    }
    if kind.model_type == "distilbert":
        names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        for given, own in zip(names, ("dim", "n_layers", "n_heads", "hidden_dim"), strict=True):
            fields[own] = fields.pop(given)
    if kind.model_type == "esm":
        fields |= {"position_embedding_type": "rotary", "token_dropout": True}
    config = getattr(transformers, f"{CLASSES[kind.model_type]}Config")(**fields, **changes)
    model = getattr(transformers, f"{CLASSES[kind.model_type]}{head}")(config).eval()
    randomise(model, seed=7)
    model.save_pretrained(directory)
    return model


def export(
    directory: Path,
    bundle: Path,
    *arguments: str,
    texts: Sequence[str] = TEXTS,
    compares_tokens: bool = False,
) -> Path:
    """Run `fillmask-export` on a checkpoint and return the directory of the bundle.

    Args:
        compares_tokens: whether the export compares the tokenizer with that of transformers, which
            takes most of its time. One export of each tokenizer is enough.
    """
    file = directory / "texts.txt"
    file.write_text("\n".join(texts))
    command = [str(directory), "--output", str(bundle), "--texts", str(file), *arguments]
    if "int8" not in arguments:  # other texts take time, and only rounding needs them
        command += ["--calibrate", str(file)]
    with pytest.MonkeyPatch.context() as patch:
        if not compares_tokens:
            patch.setattr(reading, "check_tokens", lambda *_: {})
        assert export_main(command) == 0
    return bundle


@contextmanager
def serve(scratch: Path, name: str, head: str, **changes: Any) -> Iterator[Served]:
    """Serve a random checkpoint, exported in fp32, from an empty directory."""
    torch.set_num_threads(1)  # small tensors are slower on several threads
    directory = scratch / "checkpoint"
    model = write_checkpoint(directory, name, head, **changes)
    compares_tokens = head == "ForMaskedLM" and name in UNEXPORTED
    bundle = export(directory, scratch / "bundle", compares_tokens=compares_tokens)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    with TestClient(create_app(Settings(bundle=bundle, threads=1))) as client:
        yield Served(name, client, bundle, model, tokenizer)

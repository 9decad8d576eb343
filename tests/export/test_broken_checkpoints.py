"""One-line errors of `fillmask-export` for invalid checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask_export.commands import main
from tests.model.checkpoints.families.samples import SAMPLES
from tests.model.samples import VERSES, change_config, change_tensors
from tests.model.tokenizers.tokenizer_directories import KINDS, write_directory

TABLE = "bert.embeddings.word_embeddings.weight"
QUERY = "bert.encoder.layer.1.attention.self.query"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Directory of a valid checkpoint that a test may damage."""
    path = tmp_path / "checkpoint"
    write_directory(path, KINDS["BERT"], fast=False)
    words = len((path / "vocab.txt").read_text(encoding="utf-8").splitlines())
    bert = SAMPLES["BERT, three heads"]
    sizes = {"vocab_size": words, "max_position_embeddings": 32}
    replace(bert, fields=bert.fields | sizes).make().save_pretrained(path)
    return path


def truncate(directory: Path) -> None:
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def tensors(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    """Return a function that changes the weights of a checkpoint."""
    return lambda directory: change_tensors(directory, change)


def fields(**values: Any) -> Callable[[Path], None]:
    """Return a function that changes the configuration of a checkpoint."""
    return lambda directory: change_config(directory, **values)


def spoil_value(weights: dict[str, Tensor], value: float) -> None:
    """Change one value in the middle of a tensor."""
    weights[f"{QUERY}.weight"][3, 5] = value


def more_words(directory: Path) -> None:
    """Give the tokenizer more tokens than the embedding table has rows."""
    with (directory / "vocab.txt").open("a", encoding="utf-8") as vocabulary:
        vocabulary.write("onemore\nandanother\n")


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a file cut short": (truncate, "model.safetensors is not a valid safetensors file"),
    "a tensor missing": (
        tensors(lambda t: t.pop(f"{QUERY}.weight")),
        f"(missing: {QUERY}.weight",
    ),
    "a tensor of another shape": (
        tensors(lambda t: t.update({f"{QUERY}.weight": torch.zeros(33, 32)})),
        f"{QUERY}.weight must have the shape (33, 33) (got (33, 32))",
    ),
    "a tensor too many": (
        tensors(lambda t: t.update({"bert.adapter.weight": torch.zeros(2)})),
        "the checkpoint must have only known tensors (unknown: bert.adapter.weight",
    ),
    "a weight that is no number": (
        tensors(lambda t: spoil_value(t, float("nan"))),
        f"weights must be finite (got NaN or infinity in {QUERY}.weight)",
    ),
    "a weight without bounds": (
        tensors(lambda t: spoil_value(t, float("inf"))),
        f"weights must be finite (got NaN or infinity in {QUERY}.weight)",
    ),
    "a vocabulary larger than the table": (more_words, "the number of rows of the embedding table"),
    "a value that changes the maths": (
        fields(hidden_act="mish"),
        "(got 'mish')",
    ),
    "a family nobody knows": (fields(model_type="mosaicbert"), "(got 'mosaicbert')"),
    "code of its own": (
        fields(auto_map={"AutoModelForMaskedLM": "modeling.Mine"}),
        "auto_map names the code modeling.Mine, which fillmask never runs and does not know",
    ),
    "no weights": (
        lambda d: (d / "model.safetensors").unlink(),
        "must contain model.safetensors or pytorch_model.bin",
    ),
    "no tokenizer": (lambda d: (d / "vocab.txt").unlink(), "tokenizer"),
}


def export(directory: Path) -> int:
    """Run `fillmask-export` and return its exit status."""
    texts = directory.parent / "texts.txt"
    texts.write_text("\n".join(VERSES))
    bundle = directory.parent / "bundle"
    return main([str(directory), "--output", str(bundle), "--texts", str(texts)])


def test_the_good_one_is_exported(directory: Path) -> None:
    assert export(directory) == 0
    assert (directory.parent / "bundle" / "bundle.json").is_file()


@pytest.mark.parametrize(("spoil", "sentence"), BROKEN.values(), ids=BROKEN)
def test_a_broken_one_is_refused(
    directory: Path,
    spoil: Callable[[Path], Any],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The command prints one line to standard error, exits with 2 and writes no bundle.
    spoil(directory)
    assert export(directory) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("fillmask-export")]
    assert sentence in line
    assert sorted(p.name for p in directory.parent.iterdir()) == ["checkpoint", "texts.txt"]

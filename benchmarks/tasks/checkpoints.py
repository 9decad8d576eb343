"""Random checkpoints of published sizes, and their bundles.

Random weights do not affect the speed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import BertConfig

from benchmarks.comparison.process import HOST, Server, running
from fillmask.bundles.bundle import default_bundle_path

# by name: width, layers, inner width
SIZES = {"MiniLM": (384, 6, 1536), "BERT-base": (768, 12, 3072)}
OURS = ("fillmask int8", "fillmask fp32")


def config_of(size: str) -> Any:
    """Return a configuration of BERT with the vocabulary of the built-in model."""
    width, layers, inner = SIZES[size]
    make: Any = BertConfig
    return make(
        vocab_size=30522,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=inner,
    )


def save_with_tokenizer(model: Any, directory: Path) -> None:
    """Write a checkpoint with the tokenizer of the built-in model."""
    model.save_pretrained(directory)
    tokenizer = (default_bundle_path() / "tokenizer.json").read_bytes()
    (directory / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer)))
    special = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[MASK]"}
    settings: dict[str, Any] = {f"{name}_token": token for name, token in special.items()}
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def bundle_of(checkpoint: Path, name: str) -> Path:
    """Return the place of a bundle beside its checkpoint, for one of OURS."""
    return checkpoint.with_name(name.rpartition(" ")[2])


def export(checkpoint: Path, name: str, *options: str) -> None:
    """Export one of OURS."""
    bundle = bundle_of(checkpoint, name)
    command = [sys.executable, "-m", "fillmask_export", str(checkpoint), "--output", str(bundle)]
    command += ["--precision", bundle.name, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def serving(bundle: Path) -> Iterator[tuple[str, Server]]:
    """Serve a bundle on all CPUs and yield its address and the server."""
    command = [sys.executable, "-m", "fillmask", "--bundle", str(bundle)]
    with running(command, sorted(os.sched_getaffinity(0)), f"tasks-{bundle.name}") as server:
        yield f"http://{HOST}:{server.port}", server

"""Downloads and exports from the local hub."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fillmask_export.commands import main
from fillmask_export.hub.download import Snapshot, download_checkpoint
from tests.model.samples import VERSES

NAME = "tiny-org/tiny-bert"
OTHER_FILES = ("README.md", "vocab.txt", "tf_model.h5", "training_args.bin", "pytorch_model.bin")


def download(name: str = NAME, revision: str | None = None, **options: Any) -> Snapshot:
    return download_checkpoint(name, revision, io.StringIO(), **options)


def export(directory: Path, *arguments: str, checkpoint: str = NAME) -> int:
    """Run `fillmask-export` with texts that fit the small tokenizer."""
    texts = directory / "texts.txt"
    texts.write_text("\n".join(VERSES))
    return main([checkpoint, "--texts", str(texts), "--calibrate", str(texts), *arguments])

"""Checkpoint that the user names, in a directory or on a hub."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fillmask_export.arguments import SPARSE
from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint
from fillmask_model.checkpoints.sentence_transformers import (
    ENCODER_FILE,
    read_max_length,
    read_modules,
    with_sparse_settings,
)


class Source(NamedTuple):
    """Directory of a checkpoint.

    Attributes:
        origin: id and commit of a downloaded checkpoint. None for a directory of the user.
    """

    directory: Path
    origin: str | None


def find_checkpoint(options: argparse.Namespace) -> Source:
    """Return the directory of the checkpoint, after a download of one that is on a hub."""
    path = Path(options.checkpoint)
    if path.exists():
        reject_download_options(options)
        return Source(path, None)
    # imported here, because a checkpoint in a directory needs no download
    from fillmask_export.hub.download import download_checkpoint, is_repository_id  # noqa: PLC0415

    if not is_repository_id(options.checkpoint):
        raise ValueError(
            f"{path} does not exist; name the directory of a checkpoint, or the id of a repository "
            "on the hub, such as google-bert/bert-base-uncased"
        )
    snapshot = download_checkpoint(
        options.checkpoint, options.revision, sys.stderr, allow_pickle=options.allow_pickle
    )
    origin = f"{options.checkpoint} at commit {snapshot.commit}"
    sys.stdout.write(f"checkpoint: {origin}\n")
    return Source(snapshot.directory, origin)


def reject_download_options(options: argparse.Namespace) -> None:
    """Check that a local path comes without the options of a repository."""
    if options.revision is not None or options.allow_pickle:
        raise ValueError(
            "--revision and --allow-pickle need the id of a repository (got the path "
            f"{options.checkpoint}); remove them, or name the path differently from the repository"
        )


def load_source(options: argparse.Namespace, source: Source) -> Checkpoint:
    """Read the checkpoint, with the settings of sparse vectors for that task."""
    modules = read_modules(source.directory)
    directory = source.directory / ("" if modules is None else modules.encoder)
    longest = read_max_length(directory / ENCODER_FILE)
    checkpoint = load_checkpoint(directory, options.checkpoint)
    if longest is not None:
        checkpoint = replace(checkpoint, max_length=longest, truncates=True)
    if options.task == SPARSE or (options.task is None and modules is not None):
        return with_sparse_settings(checkpoint, source.directory, modules)
    return checkpoint

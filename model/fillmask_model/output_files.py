"""Checks before a command writes files, so that it replaces no file of the user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def reject_inputs(inputs: Iterable[Path | None], outputs: Iterable[Path]) -> None:
    """Reject inputs that a command would replace by its output.

    Args:
        inputs: paths that the command reads. None for an input that is not given.
        outputs: files that the command writes, and directories whose files it replaces.

    Raises:
        ValueError: an input is an output or lies in one.
    """
    written = [(path, path.resolve()) for path in outputs]
    for source in filter(None, inputs):
        resolved = source.resolve()
        for path, target in written:
            if resolved.is_relative_to(target):
                raise ValueError(
                    f"{source} is an input, but the command replaces {path}; choose another output"
                )


def reject_foreign_files(directory: Path, names: Iterable[str], *, own: bool) -> None:
    """Reject an output directory in which a command would replace the user's files.

    Args:
        names: names of the files that the command writes.
        own: whether existing files of these names come from an earlier run.

    Raises:
        ValueError: a name belongs to a directory, or to a file that does not come from a run.
    """
    for name in names:
        path = directory / name
        if path.is_dir():
            raise ValueError(
                f"{path} must be a file, because the command writes it (got a directory); move the "
                "directory away or choose another output"
            )
        if path.exists() and not own:
            raise ValueError(
                f"{path} exists and does not come from fillmask; move it away or choose another "
                "output"
            )

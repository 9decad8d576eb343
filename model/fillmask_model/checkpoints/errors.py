"""Errors of checkpoints, with messages of one line for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fillmask_model.files import printable


class CheckpointError(ValueError):
    """Failure to read, export or train a checkpoint, with a message of one line for the user."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))  # the text may contain names from files


@contextmanager
def checkpoint_errors(directory: Path) -> Iterator[None]:
    """Convert whatever the files of a directory cause into a CheckpointError.

    Libraries raise nearly any exception for a damaged file, and a panic of the tokenizers library
    is a BaseException but not an Exception.
    """
    try:
        yield
    except (CheckpointError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    except BaseException as error:
        raise CheckpointError(
            f"{directory} cannot be read as a checkpoint ({type(error).__name__}: {error})"
        ) from error


@contextmanager
def prefix_errors(where: object) -> Iterator[None]:
    """Prefix the message of a ValueError with its location."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None

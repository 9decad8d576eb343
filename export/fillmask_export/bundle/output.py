"""Directory of an exported bundle, which changes only after the verification of the new files."""

from __future__ import annotations

import shutil
from pathlib import Path

from fillmask.bundles.bundle import DESCRIPTION_FILE, FILES, FUSED_FILE
from fillmask_model.files import read_object
from fillmask_model.output_files import reject_foreign_files


def check_output(output: Path, *, overwrite: bool) -> None:
    """Check that a directory is free for a bundle, or that it has a bundle to replace.

    Raises:
        ValueError: the directory exists and is not a bundle, or it is a bundle to keep.
    """
    if not output.exists():
        return
    if not _is_bundle(output):
        raise ValueError(f"{output} exists but is not a bundle; choose another directory")
    if not overwrite:
        raise ValueError(
            f"{output} is an existing bundle; add --overwrite to replace it, or choose another "
            "directory"
        )
    reject_foreign_files(output, (*FILES, FUSED_FILE), own=True)


def replace_bundle(staging: Path, output: Path) -> None:
    """Move the new files to the output directory.

    Other files in the directory stay.
    """
    if not output.exists():
        staging.rename(output)
        return
    (output / FUSED_FILE).unlink(missing_ok=True)  # the new bundle may not have one
    for file in staging.iterdir():
        shutil.move(file, output / file.name)


def _is_bundle(directory: Path) -> bool:
    """Return whether a directory has the description of a bundle, whose files may be damaged."""
    try:
        return "schema_version" in read_object(directory / DESCRIPTION_FILE)
    except (ValueError, OSError):
        return False

"""Where bundles lie: one, or a directory of several."""

import hashlib
from pathlib import Path

from service.bundle import DESCRIPTION_FILE
from service.errors import BundleError


def find_bundles(path: Path) -> list[Path]:
    """The bundle at a path, or those in it, in the order of their directories' names.

    Directories with a dot before their name, and those without a bundle.json, are passed over:
    volumes of Kubernetes and half-copied bundles have such.

    Raises:
        BundleError: there is none.
    """
    if (path / DESCRIPTION_FILE).is_file() or not path.is_dir():
        return [path]
    found = [
        directory
        for directory in sorted(path.iterdir())
        if not directory.name.startswith(".") and (directory / DESCRIPTION_FILE).is_file()
    ]
    if not found:
        raise BundleError(
            f"The bundle is refused: neither {path} nor a directory in it has a {DESCRIPTION_FILE}."
        )
    return found


def fingerprint(path: Path) -> str:
    """What differs when anything in a bundle does: its description has the hash of every file."""
    try:
        return hashlib.sha256((path / DESCRIPTION_FILE).read_bytes()).hexdigest()
    except OSError:  # whoever reads the bundle will say so
        return ""

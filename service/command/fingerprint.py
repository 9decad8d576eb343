"""What a job is and no other: the same fingerprint, the same output."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service import __version__
from service.bundles.bundle import DESCRIPTION_FILE, Bundle
from service.command.shard import Shard


def fingerprint(
    path: Path, field: str, parameters: Mapping[str, Any], bundle: Bundle, shard: Shard
) -> dict[str, Any]:
    """What decides of a job's answers; a file of the same content is the same input."""
    # of the description alone: it has those of the other files, which have been verified
    return {
        "version": __version__,
        "input": _sha256(path),
        "field": field,
        "parameters": dict(parameters),
        "bundle": _sha256(bundle.path / DESCRIPTION_FILE),
        "shard": str(shard),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

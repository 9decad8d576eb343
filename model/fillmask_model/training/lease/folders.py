"""Folders that travel: a manifest beside parts of limited size, with their hashes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from fillmask_model.files import atomic_replace, read_object

MANIFEST = "manifest.json"
FORMAT = 1
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder whose manifest has been read.

    Attributes:
        directory: path of the folder.
        fields: fields of the manifest that the writer gave.
        contents: parts of each content by its name, in order.
    """

    directory: Path
    fields: dict[str, Any]
    contents: dict[str, list[dict[str, Any]]]

    @classmethod
    def open(cls, directory: Path, kind: str) -> Self:
        """Read the manifest of a folder.

        Args:
            kind: what the folder holds, such as "load".

        Raises:
            ValueError: the manifest is missing or invalid, or belongs to a folder of another kind.
        """
        path = directory / MANIFEST
        manifest = read_object(path)
        found = (manifest.get("format"), manifest.get("kind"))
        if found != (FORMAT, kind):
            raise ValueError(
                f"{path} must be the manifest of a {kind} in format {FORMAT} (got {found[1]!r} in "
                f"format {found[0]!r}); give the folder of a {kind}"
            )
        return cls(directory, manifest["fields"], manifest["contents"])

    def read(self, name: str) -> bytes:
        """Return a content, joined from its parts.

        Raises:
            ValueError: a part is missing or damaged.
        """
        return b"".join(self._part(**part) for part in self.contents[name])

    def check(self) -> None:
        """Check every part.

        Raises:
            ValueError: a part is missing or damaged.
        """
        for name in self.contents:
            self.read(name)

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        parts = [int(part["bytes"]) for content in self.contents.values() for part in content]
        return sum(parts) + (self.directory / MANIFEST).stat().st_size

    def _part(self, *, file: str, bytes: int, sha256: str) -> bytes:  # noqa: A002 - a manifest's word
        path = self.directory / file
        if Path(file).name != file:
            raise ValueError(
                f"{self.directory / MANIFEST} must name files without a path (got {file!r})"
            )
        if not path.is_file():
            raise ValueError(f"{path} is missing; copy the whole folder again")
        content = path.read_bytes()
        if len(content) != bytes or hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(
                f"{path} must have the {bytes} bytes of its manifest (got {len(content)} bytes with"
                " another SHA-256); copy the whole folder again"
            )
        return content


def write_folder(
    directory: Path,
    kind: str,
    fields: Mapping[str, Any],
    contents: Mapping[str, bytes],
    *,
    part_bytes: int,
    mark: str = "",
) -> Folder:
    """Write contents as parts, then the manifest, then remove the parts of the manifest before.

    A reader therefore finds the old or the new contents, whenever the writer is killed.

    Args:
        kind: what the folder holds, such as "load".
        part_bytes: maximum size of a part.
        mark: text in the parts' names that distinguishes them from the parts before.
    """
    directory.mkdir(parents=True, exist_ok=True)
    before = _own_files(directory, kind)
    parts = {
        name: [
            _write_part(directory / f"{name}{mark}.{number}", content[start : start + part_bytes])
            for number, start in enumerate(range(0, len(content), part_bytes))
        ]
        for name, content in contents.items()
    }
    manifest = {"format": FORMAT, "kind": kind, "fields": dict(fields), "contents": parts}
    with atomic_replace(directory / MANIFEST) as temporary:
        temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for path in before - _own_files(directory, kind):
        path.unlink(missing_ok=True)
    return Folder.open(directory, kind)


def count_parts(size: int, part_bytes: int) -> int:
    """Return the number of parts of a content."""
    return math.ceil(size / part_bytes)


def _write_part(path: Path, content: bytes) -> dict[str, Any]:
    with atomic_replace(path) as temporary:
        temporary.write_bytes(content)
    return {
        "file": path.name,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _own_files(directory: Path, kind: str) -> set[Path]:
    """Return the parts of a folder's manifest, or nothing without a valid manifest."""
    try:
        folder = Folder.open(directory, kind)
    except ValueError:
        return set()
    parts = [part for content in folder.contents.values() for part in content]
    return {directory / part["file"] for part in parts if Path(part["file"]).name == part["file"]}

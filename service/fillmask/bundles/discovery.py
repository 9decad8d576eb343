"""Discovery of bundles in a directory and detection of changes to their files."""

import json
import logging
from pathlib import Path
from typing import NamedTuple

from fillmask.bundles.bundle import DESCRIPTION_FILE, FILES, FUSED_FILE, MAX_BYTES
from fillmask.bundles.validation import unreadable
from fillmask.errors import BundleError, escape_unprintable
from fillmask.regular_files import read_regular_file

_log = logging.getLogger(__name__)


class FileState(NamedTuple):
    """Identity, size and times of a file, of which a copy may keep the time of the content.

    Attributes:
        inode: numbers of the device and of the inode.
        changed_ns: time of the last change of content, name or permissions.
    """

    inode: tuple[int, int]
    size_bytes: int
    modified_ns: int
    changed_ns: int


# states of files by name, with None for a missing file
Fingerprint = dict[str, FileState | None]


def find_bundles(path: Path) -> list[Path]:
    """Return the directories of the bundles at a path, sorted by name.

    The path is the directory of one bundle or the parent of several. Hidden directories, which
    Kubernetes volumes have, and those without bundle.json, such as incomplete copies, do not count.

    Raises:
        BundleError: the directory contains no bundle or is unreadable.
    """
    try:
        if (path / DESCRIPTION_FILE).is_file() or not path.is_dir():
            return [path]
        found = _bundles_in(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if not found:
        raise BundleError(
            f"Neither {path} nor a directory in it has a {DESCRIPTION_FILE}; set bundle to the "
            "directory of a bundle."
        )
    return found


def directory_to_load(path: Path) -> Path:
    """Return the directory of a bundle, or that of a newer bundle of the same name inside of it.

    `mv new old` moves a directory into an existing one, although it is meant to replace it. The
    log has a warning for every bundle inside.
    """
    try:
        inside = _bundles_in(path)
    except OSError:  # the load of the bundle reports the reason
        return path
    used = inside[0] if len(inside) == 1 and _is_newer(inside[0], path) else path
    for one in inside:
        places = (escape_unprintable(str(each)) for each in (path, one, used))
        _log.warning(
            "the bundle %s contains the bundle %s, so %s is used; give each its own place", *places
        )
    return used


def _is_newer(bundle: Path, other: Path) -> bool:
    """Return whether a bundle has the name of another one and was written after it."""
    new, old = (one / DESCRIPTION_FILE for one in (bundle, other))
    try:
        read = (read_regular_file(file, MAX_BYTES[file.name]) for file in (new, old))
        names = {json.loads(content)["name"] for content in read}
        return len(names) == 1 and new.stat().st_mtime > old.stat().st_mtime
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # the load has the reason
        return False


def _bundles_in(path: Path) -> list[Path]:
    """Return the directories in a directory that are not hidden and have a bundle.json."""
    visible = (one for one in sorted(path.iterdir()) if not one.name.startswith("."))
    return [one for one in visible if _has_description(one)]


def _has_description(directory: Path) -> bool:
    try:
        return (directory / DESCRIPTION_FILE).is_file()
    except OSError:  # the load of the bundle reports the reason
        return True


def fingerprint(path: Path) -> Fingerprint:
    """Return the states of the files of a bundle, which change if a file is written or replaced."""
    return {name: file_state(path / name) for name in (DESCRIPTION_FILE, *FILES, FUSED_FILE)}


def file_state(file: Path) -> FileState | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    inode = stat.st_dev, stat.st_ino
    return FileState(inode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)

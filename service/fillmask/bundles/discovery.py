"""Discovery of bundles in a directory and detection of changes to their files."""

from pathlib import Path
from typing import NamedTuple

from fillmask.bundles.bundle import DESCRIPTION_FILE, FILES, FUSED_FILE
from fillmask.bundles.validation import unreadable
from fillmask.errors import BundleError


class FileState(NamedTuple):
    """Identity, size and modification times of a file.

    Attributes:
        inode: numbers of the device and of the inode.
        modified_ns: time of the last change of the content. A copy of a file may keep the time of
            the original.
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

    The path is the directory of one bundle or the parent of several such directories. The function
    ignores hidden directories, which Kubernetes volumes have. It also ignores directories without
    bundle.json, such as incomplete copies.

    Raises:
        BundleError: the directory contains no bundle or is unreadable.
    """
    try:
        if (path / DESCRIPTION_FILE).is_file() or not path.is_dir():
            return [path]
        directories = sorted(path.iterdir())
    except OSError as error:
        raise unreadable(path, error) from error
    found = [one for one in directories if not one.name.startswith(".") and _has_description(one)]
    if not found:
        raise BundleError(
            f"Neither {path} nor a directory in it has a {DESCRIPTION_FILE}; set bundle to the "
            "directory of a bundle."
        )
    return found


def _has_description(directory: Path) -> bool:
    try:
        return (directory / DESCRIPTION_FILE).is_file()
    except OSError:  # the load of the bundle reports the reason
        return True


def fingerprint(path: Path) -> Fingerprint:
    """Return the states of the files of a bundle, without reading the files.

    The result changes if a file is written, replaced or removed.
    """
    return {name: file_state(path / name) for name in (DESCRIPTION_FILE, *FILES, FUSED_FILE)}


def file_state(file: Path) -> FileState | None:
    """Return the state of a file. The state of a missing file is None."""
    try:
        stat = file.stat()
    except OSError:
        return None
    inode = stat.st_dev, stat.st_ino
    return FileState(inode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)

"""Discovery of bundles in a directory, and of changes to their files."""

from pathlib import Path
from typing import NamedTuple

from service.bundles.bundle import DESCRIPTION_FILE, FILES
from service.errors import BundleError


class FileState(NamedTuple):
    """Identity and modification times of a file.

    Attributes:
        inode: with the number of its device.
        size_bytes: of the file.
        modified_ns: time of the last change of the content; a copy may set it back.
        changed_ns: time of the last change of content, name or rights.
    """

    inode: tuple[int, int]
    size_bytes: int
    modified_ns: int
    changed_ns: int


# file name -> state; None for a missing file
Fingerprint = dict[str, FileState | None]


def find_bundles(path: Path) -> list[Path]:
    """Return the bundle at a path, or all bundles in that directory, sorted by directory name.

    Hidden directories, which Kubernetes volumes have, and directories without bundle.json, such as
    incomplete copies, are ignored.

    Raises:
        BundleError: there is no bundle.
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


def fingerprint(path: Path) -> Fingerprint:
    """Identify the files of a bundle and their last changes, without reading them.

    The result changes as soon as a file is replaced, written to or removed.
    """
    return {name: file_state(path / name) for name in (DESCRIPTION_FILE, *FILES)}


def file_state(file: Path) -> FileState | None:
    """Identify a file and its last change; None where it cannot be found."""
    try:
        stat = file.stat()
    except OSError:
        return None
    inode = stat.st_dev, stat.st_ino
    return FileState(inode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)

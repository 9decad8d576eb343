"""Where bundles lie: one, or a directory of several."""

from pathlib import Path
from typing import NamedTuple

from service.bundles.bundle import DESCRIPTION_FILE, FILES
from service.errors import BundleError


class FileState(NamedTuple):
    """A file and its last change; the inode's own is there because a copy may set the other back.

    Attributes:
        inode: with the number of its device.
        size_bytes: of the file.
        modified_ns: when its content changed.
        changed_ns: when its content, its name or its rights changed.
    """

    inode: tuple[int, int]
    size_bytes: int
    modified_ns: int
    changed_ns: int


# of each file by its name
Fingerprint = dict[str, FileState | None]


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


def fingerprint(path: Path) -> Fingerprint:
    """Identify the files of a bundle and their last changes, without reading them.

    The result is different as soon as a file is replaced or written to. A missing file counts as a
    change; reading the bundle tells what is wrong with it.
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

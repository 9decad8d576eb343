"""Where bundles lie: one, or a directory of several."""

from pathlib import Path

from service.bundle import DESCRIPTION_FILE, FILES
from service.errors import BundleError

Fingerprint = tuple[tuple[int, ...], ...]


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
    return tuple(_identity(path / name) for name in (DESCRIPTION_FILE, *FILES))


def _identity(file: Path) -> tuple[int, ...]:
    try:
        stat = file.stat()
    except OSError:
        return ()
    # the time of the last change of the inode as well: a copy may set the other one back
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns

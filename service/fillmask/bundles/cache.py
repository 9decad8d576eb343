"""Bundles that are exported from checkpoints once and then kept in a cache.

The export is a package of its own, which the serving install does not need. It runs in another
process, so that the service never loads torch.
"""

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fillmask.bundles.bundle import DESCRIPTION_FILE, MAX_BYTES, SCHEMA_VERSION
from fillmask.errors import StartupError, escape_unprintable, quote
from fillmask.regular_files import open_regular_file, read_regular_file

RECORD_FILE = "export.json"  # of a cached bundle, which says what its export has read
_PATH_DIGITS = 12  # 48 bits of a hash distinguish directories of the same name


def cached_bundle(checkpoint: str) -> Path:
    """Return the directory in the cache for the bundle of a checkpoint, which may not exist.

    The cache is the directory `fillmask` in XDG_CACHE_HOME, by default ~/.cache (XDG Base Directory
    Specification 0.8).

    Args:
        checkpoint: directory of a checkpoint, or id of a repository on a hub.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
    if os.path.exists(checkpoint):  # noqa: PTH110 - Path.exists raises an error for a long id
        path = Path(checkpoint).resolve()
        digits = hashlib.sha256(os.fsencode(path)).hexdigest()[:_PATH_DIGITS]
        return cache / "fillmask" / f"{path.name}-{digits}"
    return cache / "fillmask" / checkpoint.replace("/", "--")


def is_current(bundle: Path, checkpoint: str, options: Mapping[str, object] | None = None) -> bool:
    """Return whether a cached bundle is complete, of this format, and of the same files.

    A repository on a hub is not asked for changes.

    Args:
        options: options that the export must have had, by default any.
    """
    most_bytes = MAX_BYTES[DESCRIPTION_FILE]
    try:
        description = json.loads(read_regular_file(bundle / DESCRIPTION_FILE, most_bytes))
        record = json.loads(read_regular_file(bundle / RECORD_FILE, most_bytes))
        files, known = _files(checkpoint), record["files"]
        return (
            description["schema_version"] == SCHEMA_VERSION
            and options in (None, record["options"])
            and files.keys() == known.keys()
            and all(_state(path, known[name])[3] == known[name][3] for name, path in files.items())
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def export_record(checkpoint: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return what an export reads and the options that change its bundle, for RECORD_FILE."""
    files = {name: _state(path) for name, path in _files(checkpoint).items()}
    return {"options": options, "files": files}


def _files(checkpoint: str) -> dict[str, Path]:
    """Return the files of a checkpoint by their path in its directory, without hidden ones."""
    found: dict[str, Path] = {}
    seen = set()
    for folder, folders, names in os.walk(checkpoint, followlinks=True):
        parent = Path(folder)
        seen.add(parent.resolve())  # a link may lead to a directory that contains it
        visible = (one for one in folders if not one.startswith("."))
        folders[:] = (one for one in visible if (parent / one).resolve() not in seen)
        paths = (parent / name for name in names if not name.startswith("."))
        found |= {str(path.relative_to(checkpoint)): path for path in paths if path.is_file()}
    return found


def _state(path: Path, known: Sequence[object] = ()) -> list[object]:
    """Return the size, times and hash of a file, or `known` if size and times are the same.

    The last time tells a file from a copy that kept the other one.
    """
    stat = path.stat()
    state = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    if state == known[:3]:
        return list(known)
    with open_regular_file(path) as stream:
        return [*state, hashlib.file_digest(stream, "sha256").hexdigest()]


def exported_bundle(checkpoint: str) -> Path:
    """Return the cached bundle of a checkpoint, after an export in int8 if the cache lacks it.

    Raises:
        StartupError: the export is not installed or fails.
    """
    bundle = cached_bundle(checkpoint)
    if is_current(bundle, checkpoint):
        return bundle
    name = quote(checkpoint)
    if importlib.util.find_spec("fillmask_export") is None:
        raise StartupError(
            f"{bundle} is not a bundle of {name}, and this install cannot export one; run "
            "fillmask-export --cache where the export is installed, with the same XDG_CACHE_HOME."
        )
    message = escape_unprintable(f"exporting {name} to {bundle}, where later starts find it")
    print(message, file=sys.stderr, flush=True)  # noqa: T201 - the export prints there too
    # -P keeps modules in the current directory, which may be a downloaded checkpoint, from running
    arguments = ["-P", "-m", "fillmask_export", "--cache", "--precision", "int8", "--", checkpoint]
    # in a process group of its own, so that only this process interrupts the export
    with subprocess.Popen(  # noqa: S603 - without a shell, and the checkpoint follows "--"
        [sys.executable, *arguments], stdout=sys.stderr, process_group=0
    ) as process:
        try:
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT)  # lets the export remove its files
            raise
    if code:
        raise StartupError(
            f"The export of {name} failed with exit code {code}; its last lines tell the reason."
        )
    return bundle

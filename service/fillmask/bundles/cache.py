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
from pathlib import Path

from fillmask.bundles.bundle import DESCRIPTION_FILE, MAX_BYTES, SCHEMA_VERSION
from fillmask.errors import StartupError, escape_unprintable, quote
from fillmask.regular_files import read_regular_file

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


def is_current(bundle: Path, checkpoint: str) -> bool:
    """Return whether a cached bundle is complete and can stand for its checkpoint.

    A bundle in the format of another release is not current, nor is a bundle that is older than a
    file in the directory of its checkpoint. A repository on a hub is not asked for changes.
    """
    description = bundle / DESCRIPTION_FILE
    try:
        fields = json.loads(read_regular_file(description, MAX_BYTES[DESCRIPTION_FILE]))
        if fields["schema_version"] != SCHEMA_VERSION:
            return False
        written_s = description.stat().st_mtime
        path = Path(checkpoint)
        return not path.is_dir() or all(
            file.stat().st_mtime <= written_s for file in path.iterdir()
        )
    except (OSError, ValueError, TypeError, KeyError):
        return False


def exported_bundle(checkpoint: str) -> Path:
    """Return the cached bundle of a checkpoint, which is exported in int8 if the cache lacks it.

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

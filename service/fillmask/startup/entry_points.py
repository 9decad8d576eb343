"""Entry points of the installed commands, which check the packages before they import them.

The names `fillmask`, `fillmask_model` and `fillmask_export` are common. Python may therefore find a
package of another project in their place, for example in a folder of PYTHONPATH. The wheel contains
this file as the module `fillmask_entry_points`, because only a module with a unique name can report
such a package.
"""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

# a line in the __init__.py of each package
_MARK = b'__distribution__ = "fillmask"'


def fillmask() -> int:
    """Run the command fillmask and return its exit code."""
    return _run("fillmask", "fillmask.cli.__main__", "fillmask")


def fillmask_serve() -> int:
    """Run the command fillmask-serve and return its exit code."""
    return _run("fillmask-serve", "fillmask.__main__", "fillmask")


def fillmask_export() -> int:
    """Run the command fillmask-export and return its exit code."""
    return _run(
        "fillmask-export",
        "fillmask_export.__main__",
        "fillmask_export",
        "fillmask_model",
        "fillmask",
    )


def fillmask_train() -> int:
    """Run the command fillmask-train and return its exit code."""
    return _run("fillmask-train", "fillmask_model.__main__", "fillmask_model")


def _run(command: str, module: str, *packages: str) -> int:
    for package in packages:
        if error := _find_error(package):
            print(f"{command} {error}", file=sys.stderr)
            return 2
    code: int = importlib.import_module(module).main()
    return code


def _find_error(package: str) -> str | None:
    """Return the end of an error message if Python does not find our package, without importing."""
    spec = find_spec(package)
    if spec is None:
        return f"does not find its package {package}; install fillmask again."
    # a package without __init__.py has only directories
    found = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    try:
        content = Path(found).read_bytes()
    except OSError:
        content = b""
    if _MARK in content:
        return None
    return (
        f"finds another package named {package} ({found}) in place of its own; remove it from "
        "PYTHONPATH, or install fillmask into an environment of its own."
    )

"""The package fillmask-native of the tests.

`make .venv-dev/.native` builds it into a directory that is not on the path, because all other tests
run as on a machine without it.
"""

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest import mock

DIRECTORY = Path(sys.prefix) / "native"


@functools.cache
def load_native() -> ModuleType:
    """Return the package without making it importable."""
    spec = spec_from_file_location("fillmask_native", DIRECTORY / "fillmask_native" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def native_package() -> Iterator[ModuleType]:
    """Let the service and the export find the package."""
    with mock.patch.dict(sys.modules, fillmask_native=load_native()):
        yield load_native()

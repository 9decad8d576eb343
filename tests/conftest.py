"""Settings of pytest and its plugins for all tests."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchmarks.running_server import SOURCE_ROOTS

# The processes of the tests import this checkout, not the one that is installed.
INHERITED = [path for path in [os.environ.get("PYTHONPATH")] if path]
os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, SOURCE_ROOTS), *INHERITED])

# A make command of a test is not part of the make command that runs the tests.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)

# These files take long, mostly waiting. A worker that starts one of them last ends last.
STARTED_FIRST = [
    Path(__file__).parent / name
    for name in (
        "chaos/test_memory.py",
        "test_packaging.py",
        "service/http/test_connection.py",
        "service/registry/test_reloads.py",
        "native/test_instruction_sets.py",
    )
]

# The same examples in each run of the suite. `make properties` sets a number of random examples.
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "0"))
settings.register_profile(
    "fillmask",
    max_examples=EXAMPLES or 100,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,  # the machine may be busy
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,  # fixtures of all tests in tests/service/conftest.py
        HealthCheck.too_slow,
    ],
)
settings.load_profile("fillmask")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Backend of async tests. The service supports only asyncio."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the tests of the slowest files first."""
    rank = {path: number for number, path in enumerate(STARTED_FIRST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_collection_finish() -> None:
    """Keep the modules out of garbage collections, which otherwise take a tenth of the CPU time."""
    gc.collect()
    gc.freeze()

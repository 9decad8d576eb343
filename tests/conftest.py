"""Settings of pytest and its plugins for all tests."""

import functools
import gc
import os
import ssl
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.environments import SOURCE_ROOTS

# The processes of the tests import this checkout, not the one that is installed.
INHERITED = [path for path in [os.environ.get("PYTHONPATH")] if path]
os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, SOURCE_ROOTS), *INHERITED])

# Each HTTP client makes an SSL context, for 20 ms. No test needs one of its own.
pytest.MonkeyPatch().setattr(
    ssl, "create_default_context", functools.cache(ssl.create_default_context)
)

# A make command of a test is not part of the make command that runs the tests.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)

# Files of a room share what is costly: a browser and its page, or rendered manifests. One worker
# runs them all.
ROOMS = ("tests/service/playground/", "tests/deploy/")
# They take longest, and a worker that starts one of them last ends last.
STARTED_FIRST = (*ROOMS, "tests/service/models/test_reloads.py", "tests/simulation/")

# The same examples in each run of the suite. `make properties` sets a number of random examples.
EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "0"))
settings.register_profile(
    "fillmask",
    max_examples=EXAMPLES or 50,
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


class RoomScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist publishes no types
    """Distribution of rooms, and of the files outside of them, to the workers."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((room for room in ROOMS if nodeid.startswith(room)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> RoomScheduling:
    """Replace the distribution by file. Groups of xdist 3.8 have no effect with pytest 9.2."""
    return RoomScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the tests that take longest first."""
    rank = {start: number for number, start in enumerate(STARTED_FIRST)}

    def place(item: pytest.Item) -> int:
        return next((rank[start] for start in rank if item.nodeid.startswith(start)), len(rank))

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search no garbage among modules and tests.

    The search takes a third of the CPU time of a collection, and later a tenth of that of tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()

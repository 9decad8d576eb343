"""Several models in one process and changes of their bundles during use."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from fillmask.errors import StartupError
from tests.service.conftest import StartServer
from tests.service.put_bundle import put_bundle, reload_models, until
from tests.service.serving import serving
from tests.service.tiny import Tiny

BODY = {"inputs": "the [MASK]", "parameters": {"top_k": 2}}


@pytest.fixture
def bundles(tiny: Tiny, tmp_path: Path) -> Path:
    """Directory with two bundles and other files."""
    directory = tmp_path / "bundles"
    directory.mkdir()
    put_bundle(tiny.path, directory / "a", "first")
    put_bundle(tiny.path, directory / "b", "org/second")
    (directory / ".hidden").mkdir()
    (directory / "half copied").mkdir()
    (directory / "README").write_text("not a directory")
    return directory


def test_setting_names_the_default_model(bundles: Path) -> None:
    # The setting must name an existing model.
    with serving(bundles, model="org/second") as client:
        assert client.get("/info").json()["name"] == "org/second"
    with (
        pytest.raises(StartupError, match=r'model must be one of "first", "org/.* \(got "x"\)'),
        serving(bundles, model="x"),
    ):
        pass


def test_no_bundle_and_two_of_one_name_are_rejected(
    bundles: Path, tiny: Tiny, tmp_path: Path
) -> None:
    with (
        pytest.raises(StartupError, match="nor a directory in it has a bundle"),
        serving(bundles / ".hidden"),
    ):
        pass
    put_bundle(tiny.path, bundles / "c", "first")
    with (
        pytest.raises(StartupError, match='have the same name "first"'),
        serving(bundles),
    ):
        pass


@pytest.mark.processes
def test_changed_bundle_is_taken_and_no_request_is_lost(
    start_server: StartServer, bundles: Path, tiny: Tiny
) -> None:
    # Clients send requests throughout the reload.
    with (
        start_server("--bundle", str(bundles), "--threads=2") as (process, url),
        ThreadPoolExecutor() as pool,
    ):
        stop = time.monotonic() + 60
        done = False

        def ask() -> set[int]:
            statuses = set()
            with httpx.Client() as client:
                while not done and time.monotonic() < stop:
                    statuses.add(client.post(f"{url}/fill-mask", json=BODY).status_code)
            return statuses

        asking = [pool.submit(ask) for _ in range(2)]
        for version in range(2):
            put_bundle(tiny.path, bundles / "a", f"version-{version}")
            os.kill(process.pid, signal.SIGHUP)
            until(lambda: httpx.get(f"{url}/info").json()["name"] == f"version-{version}")  # noqa: B023 - called immediately
        done = True
        assert [one.result() for one in asking] == [{200}] * 2
        assert httpx.get(f"{url}/models/version-0").status_code == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_changes_are_found_by_polling(tiny: Tiny, bundles: Path) -> None:
    with serving(bundles, reload_every_s=1) as client:
        put_bundle(tiny.path, bundles / "c", "third")
        until(lambda: client.post("/models/third", json=BODY).is_success)
        assert client.get("/info").json()["name"] == "first"


@pytest.mark.parametrize(
    ("name", "age_s", "is_used"),
    [("first", -60, True), ("first", 60, False), ("other", -60, False)],
    ids=["newer", "older", "of another name"],
)
def test_bundle_that_was_moved_into_the_one_to_replace(
    *,
    name: str,
    age_s: int,
    is_used: bool,
    bundles: Path,
    tiny: Tiny,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # `mv new old` does this, and only a bundle that was meant to replace the other one may do so.
    outer, inner = bundles / "a", bundles / "a" / "new"
    with serving(bundles) as client:
        put_bundle(tiny.path, inner, name)
        file = inner / "bundle.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"description": "inner"}))
        written_s = (outer / "bundle.json").stat().st_mtime
        os.utime(file, (written_s - age_s,) * 2)
        reload_models(client)
        assert (client.get("/info").json()["description"] == "inner") is is_used
    [line] = [one.getMessage() for one in caplog.records if " contains " in one.getMessage()]
    used = inner if is_used else outer
    assert line.startswith(f"the bundle {outer} contains the bundle {inner}, so {used} is used;")

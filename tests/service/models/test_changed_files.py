"""Files of a bundle that change while the process uses them."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.bundles.bundle import default_bundle_path
from fillmask.engine.runtime import Runtime
from fillmask.errors import StartupError
from fillmask.models import loader
from fillmask.settings import Settings
from tests.service.conftest import StartServer
from tests.service.put_bundle import until

WORDS = ["king", "river", "gold", "winter", "train", "doctor"]


def overwrite(file: Path) -> None:
    """Overwrite a file with other bytes of the same size."""
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.write(b"\x5a" * size)


def truncate(file: Path) -> None:
    """Truncate a file, as `cp` does before it overwrites the file."""
    os.truncate(file, 0)


def answers(client: httpx.Client | TestClient) -> list[object]:
    """Return the fills of texts with many words, for which the graph reads many embeddings."""
    texts = [f"{word} is the [MASK] of {other}" for word in WORDS for other in WORDS]
    found: list[object] = []
    for start in range(0, len(texts), 50):
        body = {"inputs": texts[start : start + 50]}
        found += client.post("/fill-mask", json=body).raise_for_status().json()
    return found


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the weights stay mapped")
def test_weights_that_change_under_the_process(start_server: StartServer, tmp_path: Path) -> None:
    # A reload rejects the changed bundle.
    bundle = tmp_path / "bundle"
    shutil.copytree(default_bundle_path(), bundle)
    with (
        start_server("--bundle", str(bundle), "--threads=1") as (process, url),
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        overwrite(bundle / "weights.bin")  # before the process has read any embedding
        found = answers(client)
        for number, harm in enumerate((overwrite, truncate), 1):
            harm(bundle / "weights.bin")
            assert answers(client) == found
            assert client.get("/health/ready").is_success
            os.kill(process.pid, signal.SIGHUP)
            refused = f'fillmask_reloads_total{{outcome="refused"}} {number}.0'
            until(lambda: refused in client.get("/metrics").text)  # noqa: B023 - called immediately
            assert answers(client) == found
    with TestClient(create_app(Settings(threads=1))) as client:
        assert answers(client) == found


# the service with every model too large for a copy
LARGE = """
import sys
from fillmask.engine.linux import memory
from fillmask.models import weights_watch
memory.MAX_COPIED_BYTES, weights_watch.CHECK_INTERVAL_S = 0, 0.1
from fillmask.__main__ import main
sys.exit(main())
"""


@pytest.mark.processes
def test_weights_too_large_for_a_copy_are_watched(
    start_server: StartServer, bundle_copy: Path
) -> None:
    # A rename, a link or new permissions do not change the content that the process has mapped.
    # After a change of the weights, the service logs the reason and exits.
    with (
        tempfile.TemporaryFile("w+") as errors,
        start_server("--bundle", str(bundle_copy), code=LARGE, errors=errors) as (process, _),
    ):
        weights = bundle_copy / "weights.bin"
        weights.chmod(0o600)
        os.link(weights, bundle_copy / "linked")
        time.sleep(0.3)
        shutil.copy(weights, bundle_copy / "other")
        os.link(bundle_copy / "linked", bundle_copy / "kept")
        (bundle_copy / "other").replace(weights)
        time.sleep(0.3)
        assert process.poll() is None
        (bundle_copy / "kept").replace(weights)
        overwrite(weights)
        assert process.wait(10) == 1
        errors.seek(0)
        assert "weights.bin of the model tiny has changed on disk" in errors.read()


@pytest.mark.parametrize("name", ["bundle.json", "weights.bin"])
def test_a_file_replaced_while_it_is_read(
    name: str, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If the service accepted the file, the verified file could differ from the served file.
    def replaced(model_path: Path, threads: int, **options: Any) -> Runtime:
        runtime = Runtime(model_path, threads, **options)
        file = bundle_copy / name
        other = file.with_name("other")
        other.write_bytes(file.read_bytes())
        other.replace(file)
        return runtime

    monkeypatch.setattr(loader, "Runtime", replaced)
    settings = Settings(bundle=bundle_copy, threads=1)
    with pytest.raises(StartupError, match="its files change during loading"):
        asyncio.run(loader.load_model(settings, pytest.fail))


# the service, which crashes at the import of its server
CRASHING = """
import os, signal, sys
class Crash:
    def find_spec(self, name, *_):
        if name == "uvicorn":
            os.kill(os.getpid(), signal.SIGBUS)
sys.meta_path.insert(0, Crash())
from fillmask.__main__ import main
main()
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="it has other signals")
def test_a_crash_leaves_a_line() -> None:
    # The kernel sends SIGBUS if a disk fails or a mapped file shrinks.
    command = [sys.executable, "-c", CRASHING]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == -signal.SIGBUS
    assert "Fatal Python error: Bus error" in done.stderr

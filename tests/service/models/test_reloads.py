"""Reloads in a real process: memory, signals and the last requests of the old model."""

import asyncio
import gc
import os
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from fillmask.app import create_app
from fillmask.bundles.bundle import default_bundle_path
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from fillmask.engine.runtime import Runtime
from fillmask.models.served_model import ServedModel
from fillmask.settings import Settings
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.score.parameters import ScoreParameters
from tests.chaos.memory import MB, deleted_maps, resident_bytes
from tests.service.conftest import StartServer
from tests.service.forked import fork
from tests.service.held_model import HELD
from tests.service.put_bundle import put_bundle, until
from tests.service.tiny import Tiny

BODY = {"inputs": "the [MASK]"}
RELOADS = 20
# one model in memory takes about 80 MB, including memory that the runtime keeps
MOST_GROWTH_MB = 90


@pytest.fixture
def bundle(tiny: Tiny, tmp_path: Path) -> Path:
    """Bundle of the model "old", which a test may replace."""
    put_bundle(tiny.path, tmp_path / "bundle", "old")
    return tmp_path / "bundle"


def until_served(url: str, name: str) -> None:
    """Wait until the default model has this name."""
    with httpx.Client() as client:  # a new client takes 50 ms of CPU to read certificates
        until(lambda: bool(client.get(f"{url}/info").json()["name"] == name))


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_returned(start_server: StartServer, tmp_path: Path) -> None:
    # The process reloads its bundle 20 times.
    bundle, source = tmp_path / "bundle", default_bundle_path()
    put_bundle(source, bundle, "version-0")
    with start_server("--bundle", str(bundle), "--threads=1", forks=False) as (process, url):
        assert httpx.post(f"{url}/fill-mask", json=BODY).is_success
        before_bytes = resident_bytes(process.pid)
        for version in range(1, RELOADS + 1):
            put_bundle(source, bundle, f"version-{version}")
            os.kill(process.pid, signal.SIGHUP)
            until_served(url, f"version-{version}")
            assert httpx.post(f"{url}/fill-mask", json=BODY).is_success
        until(lambda: not deleted_maps(process.pid))
        assert resident_bytes(process.pid) < before_bytes + MOST_GROWTH_MB * MB


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks it")
def test_sighup_while_loading_is_done_after_it(tiny: Tiny, bundle: Path, held: Path) -> None:
    # The bundle changes while the service loads it at the start.
    held.touch()
    flags = ["--port=0", "--threads=1", f"--bundle={bundle}"]
    with tempfile.TemporaryFile("w+") as errors, fork(HELD, flags, errors) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"  # the service has read the bundle
        put_bundle(tiny.path, bundle, "new")
        os.kill(process.pid, signal.SIGHUP)
        held.unlink()
        line = next((line for line in process.stdout if " serves " in line), "")
        assert " serves old on " in line
        url = line.split(" on ")[1].split(",")[0]
        until_served(url, "new")


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="SIGHUP does not exist there")
def test_nothing_is_loaded_while_draining(
    start_server: StartServer, tiny: Tiny, bundle: Path
) -> None:
    with start_server("--bundle", str(bundle), "--drain-delay-s=60") as (process, url):
        process.send_signal(signal.SIGTERM)
        until(lambda: httpx.get(f"{url}/health/ready").status_code == 503)
        put_bundle(tiny.path, bundle, "new")
        os.kill(process.pid, signal.SIGHUP)
        time.sleep(0.4)  # a load takes a tenth of it
        assert httpx.get(f"{url}/info").json()["name"] == "old"


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="SIGHUP does not exist there")
def test_sigterm_during_a_reload(
    start_server: StartServer, tiny: Tiny, bundle: Path, held: Path
) -> None:
    # The process exits with 0, as at any other time.
    with start_server("--bundle", str(bundle), code=HELD) as (process, _):
        held.touch()
        put_bundle(tiny.path, bundle, "new")
        os.kill(process.pid, signal.SIGHUP)
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGTERM)
        held.unlink()
        assert process.wait(20) == 0


@pytest.fixture
def _no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collections")
async def test_no_cycle_holds_an_old_model(tiny: Tiny, bundle: Path) -> None:
    # The service freezes loaded objects, so the garbage collector would not free a cycle.
    service = create_app(Settings(bundle=bundle, threads=1))
    async with service.router.lifespan_context(service):
        old = service.state.models.default
        fills, scores = old.pipelines["fill-mask"], old.pipelines["score"]
        await fills.compute(["the [MASK]"], [FillMaskParameters(targets=("dog", "cat"))])
        await fills.compute(["[MASK] [MASK]"], [FillMaskParameters(strategy="joint")])
        await scores.compute(["the dog"], [ScoreParameters()])
        parts = (old.batcher, fills, scores, scores._tokenizer)
        left = [weakref.ref(part) for part in parts]
        del old, parts, fills, scores
        put_bundle(tiny.path, bundle, "new")
        await service.state.models.reload()
        await asyncio.gather(*service.state.models._retiring)
        assert [found for reference in left if (found := reference()) is not None] == []


async def test_a_body_may_arrive_after_the_reload(tiny: Tiny, bundle: Path) -> None:
    # The model that the request found at its head answers it and is then closed.
    service = create_app(Settings(bundle=bundle, threads=1))

    async def body() -> AsyncIterator[bytes]:
        yield b'{"inputs": '
        put_bundle(tiny.path, bundle, "new")
        await service.state.models.reload()
        assert service.state.models._retiring
        yield b'"the [MASK]"}'

    async with service.router.lifespan_context(service):
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            headers = {"Content-Type": "application/json"}
            answer = await client.post("/fill-mask", content=body(), headers=headers)
        await asyncio.gather(*service.state.models._retiring)
        assert service.state.models.default.info.name == "new"
    assert answer.status_code == 200, answer.text


class SlowModel:
    """Runtime of one model, whose next runs wait. Create it before the models are loaded.

    Attributes:
        model: the slow model, by default none.
        events: ends of its runs, and its end.
        at_work: set when a run has begun.
        go: ends the wait.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.model: ServedModel | None = None
        self.events: list[str] = []
        self.at_work, self.go = asyncio.Event(), threading.Event()
        loop, run, close = asyncio.get_running_loop(), Runtime.run, Runtime.close

        def run_slowly(runtime: Runtime, batch: Batch) -> BatchOutputs:
            if self._has(runtime):
                loop.call_soon_threadsafe(self.at_work.set)
                self.go.wait(10)
                self.events.append("run")
            return run(runtime, batch)

        def record_close(runtime: Runtime) -> None:
            if self._has(runtime):
                self.events.append("close")
            close(runtime)

        patch.setattr(Runtime, "run", run_slowly)
        patch.setattr(Runtime, "close", record_close)

    def _has(self, runtime: Runtime) -> bool:
        return self.model is not None and self.model.batcher._run.__self__ is runtime  # type: ignore[attr-defined] # a bound method


async def test_long_request_keeps_its_model_and_five_reloads_are_one(
    tiny: Tiny, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowModel(monkeypatch)
    service = create_app(Settings(bundle=bundle, threads=1))
    async with (
        asyncio.timeout(20),
        service.router.lifespan_context(service),
        httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://test") as client,
    ):
        models = service.state.models
        slow.model = models.default
        asked = asyncio.create_task(client.post("/models/old", json=BODY))
        await slow.at_work.wait()
        put_bundle(tiny.path, bundle, "new")
        for _ in range(5):
            models.start_reload()
        await asyncio.gather(*models._reloads)
        assert (await client.post("/models/old", json=BODY)).status_code == 404
        assert (await client.post("/models/new", json=BODY)).status_code == 200
        assert not asked.done()
        slow.go.set()
        assert (await asked).status_code == 200
        await asyncio.gather(*models._retiring)
        page = (await client.get("/metrics")).text
        assert 'fillmask_reloads_total{outcome="taken"} 1.0' in page
        assert 'fillmask_reloads_total{outcome="refused"} 0.0' in page
    assert slow.events == ["run", "close"]


async def test_a_stop_waits_for_the_batch_of_an_old_model(
    tiny: Tiny, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Found by the simulation: the stop cancelled the retirement, which then freed the model.
    slow = SlowModel(monkeypatch)
    service = create_app(Settings(bundle=bundle, threads=1))
    async with asyncio.timeout(20), service.router.lifespan_context(service):
        models = service.state.models
        old = slow.model = models.default
        leaving = asyncio.create_task(
            old.pipelines["fill-mask"].compute(["the [MASK]"], [FillMaskParameters()])
        )
        await slow.at_work.wait()
        leaving.cancel()
        put_bundle(tiny.path, bundle, "new")
        await models.reload()
        await asyncio.sleep(0)  # the retirement starts
        asyncio.get_running_loop().call_later(0.2, slow.go.set)
    assert slow.events == ["run", "close"]

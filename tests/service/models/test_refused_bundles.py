"""Bundles that fail in unusual ways, at the start and at a reload."""

import asyncio
import errno
import gc
import hashlib
import logging
import os
import re
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry

from fillmask.engine.runtime import Runtime
from fillmask.errors import BundleError
from fillmask.models import loader, registry
from fillmask.models.loader import load_model
from fillmask.models.registry import ModelRegistry
from fillmask.settings import Settings
from tests.service.harmed_bundles import (
    loop_in_every_run,
    panic_at_a_text,
    panic_at_the_load,
)
from tests.service.put_bundle import put_bundle, reload_models
from tests.service.serving import serving
from tests.service.tiny import Tiny

BODY = {"inputs": "the [MASK]"}
Harm = Callable[[Path], None]
LIMIT_S = 0.2
WORDS = "secret {}".format("words")  # not in a line of a traceback


@contextmanager
def failing_reads(error: BaseException) -> Iterator[None]:
    """Make each verification of a file fail."""

    def fail(*_: Any) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "file_digest", fail)
        yield


HARMS: dict[str, tuple[Harm | BaseException, str]] = {
    "panic at the load": (
        panic_at_the_load,
        r"The bundle is invalid: tokenizer\.json is not a valid tokenizer; export the bundle .*\.",
    ),
    "panic at a text": (
        panic_at_a_text,
        (
            r"The bundle does not work on this machine: the model cannot fill golden prompt 0 "
            r"\(The model's tokenizer cannot read the text; .*\); export the bundle again\."
        ),
    ),
    "disk fails": (
        OSError(errno.EIO, os.strerror(errno.EIO), "/bundles/a/weights.bin"),
        (
            r"The bundle .* cannot be read \(weights\.bin: input/output error\); make its files "
            r"readable, or copy the bundle again\."
        ),
    ),
    "no memory": (
        MemoryError(),
        r"The bundle .* needs more memory than the process has; raise the memory limit or .*\.",
    ),
    "a defect": (
        RuntimeError(WORDS),
        r"The bundle .* cannot be loaded \(RuntimeError\); export the bundle again\.",
    ),
    "endless runs": (
        loop_in_every_run,
        (
            r"The bundle does not work on this machine: its verification must take at most 0\.2 s "
            r"\(got more\); use a smaller model or a faster machine\."
        ),
    ),
}
# in a native library, and no end
KINDS = ["panic at a text", "endless runs"]


@contextmanager
def harmed(harm: Harm | BaseException | str, path: Path) -> Iterator[None]:
    """Harm the files of a bundle, their reading, or a part of the registry by its name.

    A bundle that loops gets little time.
    """
    with pytest.MonkeyPatch.context() as patch:
        if harm is loop_in_every_run:
            patch.setattr(loader, "VERIFICATION_LIMIT_S", LIMIT_S)
        if isinstance(harm, str):
            patch.setattr(registry, harm, _defect(getattr(registry, harm), path))
            yield
        elif isinstance(harm, BaseException):
            with failing_reads(harm):
                yield
        else:
            harm(path)
            yield


def _defect(whole: Callable[[Path], Any], bundle: Path) -> Callable[[Path], Any]:
    """Return a function of the registry that fails for a bundle and for the directory around it."""

    def call(path: Path) -> Any:
        if path in {bundle, bundle.parent}:
            raise KeyError(WORDS)
        return whole(path)

    return call


@pytest.fixture(scope="module", autouse=True)
def _older_objects() -> None:
    """Keep the objects of other modules out of the garbage collections of this one."""
    gc.collect()
    gc.freeze()


def reloads(client: TestClient, outcome: str) -> float:
    """Return the number of reloads with an outcome, without the cost of parsing a scrape."""
    registry: CollectorRegistry = client.app.state.metrics._registry  # type: ignore[attr-defined]
    found = registry.get_sample_value("fillmask_reloads_total", {"outcome": outcome})
    assert found is not None
    return found


def worker_threads() -> list[str]:
    """Return the names of the threads that compute or measure time."""
    names = [one.name for one in threading.enumerate()]
    return sorted(name for name in names if re.match(r"fillmask-worker|Thread-.*Timer|Timer", name))


@pytest.mark.parametrize(
    ("case", "background"), [*((case, False) for case in HARMS), *((case, True) for case in KINDS)]
)
async def test_any_failure_is_one_sentence(
    case: str,
    background: bool,  # noqa: FBT001 - pytest passes it
    bundle_copy: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Without the words of an exception, which may be words of a text. Nothing stays behind.
    harm, message = HARMS[case]
    runtimes: list[weakref.ref[Runtime]] = []

    class Watched(Runtime):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            runtimes.append(weakref.ref(self))

    before = worker_threads()
    settings = Settings(bundle=bundle_copy, threads=2)
    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.DEBUG):
        patch.setattr(loader, "Runtime", Watched)
        with harmed(harm, bundle_copy):
            started_s = time.monotonic()
            with pytest.raises(BundleError) as caught:
                await load_model(settings, pytest.fail, background=background)
    assert time.monotonic() - started_s < 10
    assert re.fullmatch(message, str(caught.value))
    assert WORDS not in caplog.text
    assert worker_threads() == before
    del caught
    async with asyncio.timeout(10):
        # the other thread and the event loop hold the exception for a moment
        while any(one() is not None for one in runtimes):
            await asyncio.sleep(0.01)
            gc.collect()


def _flip_a_bit(bundle: Path) -> None:
    weights = bundle / "weights.bin"
    content = weights.read_bytes()
    weights.write_bytes(bytes([content[0] ^ 1]) + content[1:])


UNCHANGED = r"the registry does not reload the bundle a, so the models do not change\. "
# new name of a bundle, its harm, and the line of the log
CHANGES: dict[str, tuple[str, Harm | str, str]] = {
    "no file": ("new", lambda one: (one / "weights.bin").unlink(), f"{UNCHANGED}The bundle .*"),
    "other weights": ("first", _flip_a_bit, f"{UNCHANGED}The bundle is invalid: the SHA-256 of .*"),
    "a name twice": ("org/second", lambda _: None, f"{UNCHANGED}The bundles .* the same name .*"),
    "all gone": (
        "new",
        lambda one: shutil.rmtree(one.parent),
        r"the registry does not reload the bundle bundles, .* is not a directory; set bundle to .*",
    ),
    "a panic": ("new", panic_at_a_text, UNCHANGED + HARMS["panic at a text"][1]),
    "endless runs": ("new", loop_in_every_run, UNCHANGED + HARMS["endless runs"][1]),
    # the log has the traceback of an error of the service itself, without its words
    "a defect": ("new", "fingerprint", rf"{UNCHANGED}\n(.*\n)*KeyError\n?"),
    "a defect of the search": (
        "new",
        "find_bundles",
        r"the registry does not reload any bundle\. \n(.*\n)*KeyError\n?",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_reloads_go_on_after_any_failure(
    case: str, tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Each failure is counted and logged. A later valid bundle replaces the model.
    name, harm, message = CHANGES[case]
    bundle = tmp_path / "bundles" / "a"
    bundle.parent.mkdir()
    put_bundle(tiny.path, bundle, "first")
    put_bundle(tiny.path, bundle.with_name("b"), "org/second")
    with serving(bundle.parent) as client, caplog.at_level(logging.ERROR):
        put_bundle(tiny.path, bundle, name)
        with harmed(harm, bundle):
            reload_models(client)
        assert (reloads(client, "refused"), reloads(client, "taken")) == (1, 0)
        assert client.get("/info").json()["name"] == "first"
        assert client.post("/models/first", json=BODY).is_success
        lines = [one.getMessage() for one in caplog.records if one.name.startswith("fillmask")]
        [line] = [line for line in lines if "does not reload" in line]
        assert re.fullmatch(message, line)
        assert WORDS not in caplog.text
        bundle.parent.mkdir(exist_ok=True)
        put_bundle(tiny.path, bundle, "new")
        reload_models(client)
        assert client.get("/info").json()["name"] == "new"
        assert reloads(client, "taken") == 1
        assert client.get("/health/ready").is_success


def test_a_directory_that_cannot_be_searched_does_not_stop_the_others(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The directory lost+found of a volume is an example.
    put_bundle(tiny.path, tmp_path / "b", "old")
    is_file = Path.is_file

    def fail(path: Path) -> bool:
        if path.parent.name == "a":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_file(path)

    with serving(tmp_path) as client, caplog.at_level(logging.ERROR):
        (tmp_path / "a").mkdir()
        put_bundle(tiny.path, tmp_path / "b", "new")
        monkeypatch.setattr(Path, "is_file", fail)
        reload_models(client)
        assert client.get("/info").json()["name"] == "new"
        assert (reloads(client, "refused"), reloads(client, "taken")) == (1, 1)
        assert "a cannot be read (bundle.json: permission denied)" in caplog.text


def test_names_of_directories_forge_no_lines(
    tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put_bundle(tiny.path, tmp_path / "a", "old")
    with serving(tmp_path) as client, caplog.at_level(logging.INFO):
        put_bundle(tiny.path, tmp_path / "b\nfillmask serves", "new")
        put_bundle(tiny.path, tmp_path / "c\nfillmask serves", "new")
        reload_models(client)
    lines = [one.getMessage() for one in caplog.records if one.name.startswith("fillmask")]
    assert any("b\\nfillmask serves" in line for line in lines)
    assert any("c\\nfillmask serves" in line for line in lines)
    assert not any("\n" in line for line in lines)


def test_the_end_of_the_service_ends_an_endless_reload(tiny: Tiny, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    put_bundle(tiny.path, bundle, "old")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "VERIFICATION_LIMIT_S", 60)
        with serving(bundle) as client:
            put_bundle(tiny.path, tmp_path / "copy", "bad")
            loop_in_every_run(tmp_path / "copy")
            put_bundle(tmp_path / "copy", bundle, "bad")
            assert client.portal is not None
            models: ModelRegistry = client.app.state.models  # type: ignore[attr-defined]
            client.portal.call(models.start_reload)
            time.sleep(0.3)
            started_s = time.monotonic()
        assert time.monotonic() - started_s < 10

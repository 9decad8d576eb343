"""Replacement of a bundle while a service uses it."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from fastapi.testclient import TestClient

from fillmask.models.registry import ModelRegistry


def put_bundle(source: Path, path: Path, name: str) -> None:
    """Copy a bundle with a new model name to a path, in place of any older bundle.

    The copy gets the path only after it is complete.
    """
    making = path.with_name(f".{path.name}")
    shutil.copytree(source, making)
    description = json.loads((making / "bundle.json").read_text())
    (making / "bundle.json").write_text(json.dumps(description | {"name": name}))
    if path.exists():
        path.rename(path.with_name(".old"))
    making.rename(path)
    shutil.rmtree(path.with_name(".old"), ignore_errors=True)


def reload_models(client: TestClient) -> None:
    """Reload the models of a service in this process and wait for the end."""
    assert client.portal is not None
    models: ModelRegistry = client.app.state.models  # type: ignore[attr-defined]
    client.portal.call(models.reload)


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, for at most 20 s."""
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)

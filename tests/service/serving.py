"""The service in this process."""

from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings


def serving(bundle: Path, **settings: Any) -> TestClient:
    """Return a client whose `with` block starts a service with a bundle and stops it."""
    own = {"threads": 1, **settings}
    return TestClient(create_app(Settings(bundle=bundle, **own)))

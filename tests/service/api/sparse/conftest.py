"""Fixture: the service with all models, as the client of every test here."""

import pytest
from fastapi.testclient import TestClient


@pytest.fixture
def client(every_model: TestClient) -> TestClient:
    return every_model

"""What all deployment files have in common."""

import re
from pathlib import Path

import pytest

from tests.deploy import files

DEPLOYMENT_FILES = [
    files.DOCKERFILE,
    files.DOCKERIGNORE,
    files.COMPOSE,
    *sorted(files.K8S.rglob("*.yaml")),
    *sorted(files.K8S.rglob("*.env")),
]


@pytest.mark.parametrize(
    "path", DEPLOYMENT_FILES, ids=lambda path: str(path.relative_to(files.ROOT))
)
def test_every_variable_is_a_setting(path: Path) -> None:
    """No file sets, or tells a reader to set, a variable that stops the start."""
    assert set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", path.read_text())) <= files.VARIABLES


@pytest.mark.parametrize(
    "path", DEPLOYMENT_FILES, ids=lambda path: str(path.relative_to(files.ROOT))
)
def test_no_file_names_a_package_index(path: Path) -> None:
    """Where packages come from is the builder's business."""
    assert not re.search(r"index-url|find-links|trusted-host|pip\.conf", path.read_text())


def test_usage_in_the_dockerfile_waits_longer_than_the_drain() -> None:
    """The command shown to readers does not cut off accepted requests."""
    stop_timeout_s = re.search(r"--stop-timeout (\d+)", files.DOCKERFILE.read_text())
    assert stop_timeout_s
    assert int(stop_timeout_s[1]) > files.DEFAULT_GRACE_S

"""Rules for every deployment file."""

import re
from pathlib import Path

import pytest

from tests.deploy import files

DEPLOYMENT_FILES = [
    files.DOCKERFILE,
    files.DOCKERIGNORE,
    files.COMPOSE,
    *sorted(path for path in files.K8S.rglob("*") if path.is_file()),
]
EACH = pytest.mark.parametrize(
    "path", DEPLOYMENT_FILES, ids=lambda path: str(path.relative_to(files.ROOT))
)


@EACH
def test_every_variable_is_a_setting(path: Path) -> None:
    assert set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", path.read_text())) <= files.VARIABLES


@EACH
def test_no_file_names_a_package_index(path: Path) -> None:
    # Users who build the image choose the package index themselves.
    assert not re.search(r"index-url|find-links|trusted-host|pip\.conf", path.read_text())


def test_usage_in_the_dockerfile_waits_longer_than_the_drain() -> None:
    stop_timeout_s = re.search(r"--stop-timeout (\d+)", files.DOCKERFILE.read_text())
    assert stop_timeout_s
    assert int(stop_timeout_s[1]) > files.DEFAULT_GRACE_S

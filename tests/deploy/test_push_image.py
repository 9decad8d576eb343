"""`make push-image`, with a program in place of docker that records its arguments."""

import os
import subprocess
from pathlib import Path

import pytest

from fillmask import __version__
from tests.deploy import files

# The program answers the inspections: $TAGS names the tag in the registry, $BUILDERS the builder.
# The registry responds with $REFUSAL to a request for another tag.
DOCKER = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
    "buildx imagetools inspect $TAGS") ;;
    "buildx imagetools inspect"*)
        grep --quiet -e --push "$CALLS" || { echo "ERROR: $REFUSAL" >&2; exit 1; } ;;
    "buildx inspect $BUILDERS") ;;
    "buildx inspect"*) exit 1 ;;
esac
"""
pytestmark = pytest.mark.processes

REGISTRY = "registry.example.com/team"
IMAGE = f"{REGISTRY}/fillmask:{__version__}"


class Push:
    """A run of `make push-image`."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        tags: str = "",
        builders: str = "",
        refusal: str = f"{IMAGE}: not found",
    ) -> None:
        docker, calls = directory / "docker", directory / "calls"
        docker.write_text(DOCKER)
        docker.chmod(0o755)
        calls.touch()
        variables = {"CALLS": str(calls), "TAGS": tags, "BUILDERS": builders, "REFUSAL": refusal}
        self.done = subprocess.run(
            ["make", "--no-print-directory", "push-image", *arguments],
            cwd=files.ROOT,
            env=os.environ | variables | {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        self.calls = calls.read_text().splitlines()

    def build(self) -> list[str]:
        """Return the words of the only build."""
        (build,) = (call for call in self.calls if call.startswith("buildx build"))
        return build.split()


def test_image_of_two_architectures_is_pushed_with_its_origin(tmp_path: Path) -> None:
    push = Push(tmp_path, f"REGISTRY={REGISTRY}", builders="fillmask")
    assert push.done.returncode == 0, push.done.stderr
    build = push.build()
    assert build[build.index("--platform") + 1] == "linux/amd64,linux/arm64"
    assert build[build.index("--tag") + 1] == IMAGE
    assert {"--sbom=true", "--provenance=mode=max", "--push"} <= set(build)
    assert "--target" not in build
    assert build[build.index("--metadata-file") + 1] == "build/image.json"  # has the digest
    assert push.calls[-1] == f"buildx imagetools inspect {IMAGE}"


def test_image_has_any_name(tmp_path: Path) -> None:
    # The workflow of a release names the image after the repository.
    push = Push(
        tmp_path, "IMAGE=ghcr.io/team/other:1.0", refusal="ghcr.io/team/other:1.0: not found"
    )
    assert push.build()[-3] == "ghcr.io/team/other:1.0"


@pytest.mark.parametrize(("builders", "created"), [("fillmask", 0), ("", 1)])
def test_builder_is_created_once(builders: str, created: int, tmp_path: Path) -> None:
    push = Push(tmp_path, f"REGISTRY={REGISTRY}", builders=builders)
    assert sum(call.startswith("buildx create --name fillmask") for call in push.calls) == created


def test_tag_of_the_registry_stays(tmp_path: Path) -> None:
    push = Push(tmp_path, f"REGISTRY={REGISTRY}", tags=IMAGE)
    assert push.done.returncode == 2
    assert f"choose another tag with TAG={__version__}-1" in push.done.stderr
    assert push.calls == [f"buildx imagetools inspect {IMAGE}"]
    other = Push(tmp_path, f"REGISTRY={REGISTRY}", f"TAG={__version__}-1", tags=IMAGE)
    assert f"{IMAGE}-1" in other.build()


def test_nothing_is_pushed_if_the_registry_does_not_list_its_tags(tmp_path: Path) -> None:
    push = Push(tmp_path, f"REGISTRY={REGISTRY}", refusal="503 Service Unavailable")
    assert push.done.returncode == 2
    assert f"whether {IMAGE} exists: ERROR: 503 Service Unavailable" in push.done.stderr
    assert push.calls == [f"buildx imagetools inspect {IMAGE}"]


def test_registry_must_be_set(tmp_path: Path) -> None:
    push = Push(tmp_path)
    assert push.done.returncode == 2
    assert "REGISTRY is not set; run make push-image REGISTRY=" in push.done.stderr
    assert push.calls == []

"""The checks and files of a release, and the workflow that publishes it."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from fillmask import __version__
from tests.deploy import files, kustomize
from tests.docs import pages

pytestmark = pytest.mark.processes

SCRIPT = pages.ROOT / ".github" / "release.py"
NAME = "registry.example.com/team/fillmask"
IMAGE = f"{NAME}@sha256:{'0123456789abcdef' * 4}"
# All manifests with images, but for `local`, whose image you build. One run of kustomize renders
# several directories whose objects have different names.
TOGETHER = [
    ["base"],
    ["overlays/production", "examples/whole-file", "examples/pretraining"],
    ["overlays/kserve", "overlays/kserve-cluster-runtime"],
    ["overlays/kserve-runtime"],
]
WORKFLOW: dict[str, Any] = yaml.safe_load(
    pages.read(pages.ROOT / ".github" / "workflows" / "release.yaml")
)


def release(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script with the standard library only, as the workflow does."""
    return subprocess.run(
        [sys.executable, "-S", SCRIPT, *arguments],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_tag_of_the_version_passes() -> None:
    done = release("check", f"v{__version__}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("tag", ["", __version__, f"v{__version__}.1"])
def test_any_other_tag_is_refused(tag: str) -> None:
    done = release("check", tag)
    assert done.returncode == 1
    assert f"the tag of version {__version__} must be v{__version__} (got {tag!r})" in done.stderr


def test_notes_are_the_section_of_the_version_with_full_links() -> None:
    url = "https://example.com/team/fillmask"
    notes = release("notes", IMAGE, PROJECT_URL=url).stdout
    changelog = pages.read(pages.ROOT / "CHANGELOG.md")
    [title] = re.findall(rf"^## {re.escape(__version__)} - .+$", changelog, re.MULTILINE)
    section = pages.section(changelog, title.removeprefix("## "))
    assert notes.split()[:10] == section.split()[:10]
    assert "\n## " not in notes
    assert not re.search(r"\S\n *[^\s#-]", notes)  # lines are paragraphs or items
    assert IMAGE in notes
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", notes))


@pytest.mark.parametrize(
    ("changelog", "problem"),
    [
        ("## Unreleased\n\nA line.\n", "must have the section `## 1.2.3 - YYYY-MM-DD`"),
        ("## 1.2.3 - 2026-01-01\n\n## 1.2.2 - 2025-01-01\n\nA line.\n", "must have the section"),
        ("## 1.2.3\n\nA line.\n", "must have the section"),
        ("## 1.2.3 - 2026-01-01\n\nA [page](docs/page.md).\n\n## 1.2.2 - 2025-01-01\n\nB\n", ""),
    ],
)
def test_a_version_needs_its_section(changelog: str, problem: str, tmp_path: Path) -> None:
    script = tmp_path / ".github" / "release.py"
    for path, text in {
        script: pages.read(SCRIPT),
        tmp_path / "service" / "fillmask" / "__init__.py": '__version__ = "1.2.3"\n',
        tmp_path / "CHANGELOG.md": changelog,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, script, "notes"],
        env=os.environ | {"PROJECT_URL": "https://example.com/a"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert problem in done.stderr
    assert done.returncode == bool(problem)
    if not problem:
        assert done.stdout == "A [page](https://example.com/a/blob/v1.2.3/docs/page.md).\n"


@pytest.mark.slow
def test_every_root_with_images_is_compared() -> None:
    compared = {files.K8S / root for roots in TOGETHER for root in roots}
    with_images = {root for root in kustomize.ROOTS if images(kustomize.rendered(root))}
    assert with_images - {files.K8S / "overlays" / "local"} == compared


@pytest.mark.parametrize("image", ["", NAME, f"{NAME}:{__version__}", f"{NAME}@sha256:0123"])
def test_an_image_without_its_digest_is_refused(image: str, tmp_path: Path) -> None:
    done = release("manifests", image, str(tmp_path / "k8s.tar.gz"))
    assert done.returncode == 1
    assert f"the image must be NAME@sha256:DIGEST (got {image!r})" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_manifest_of_the_service_pulls_the_pushed_image(tmp_path: Path) -> None:
    done = release("manifests", IMAGE, str(tmp_path / "k8s.tar.gz"))
    assert (done.returncode, done.stderr) == (0, "")
    with tarfile.open(tmp_path / "k8s.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert not (tmp_path / "k8s" / "overlays" / "local").exists()  # it runs an image that you build
    ours = re.compile(rf"(\S+/)?fillmask:{re.escape(__version__)}")
    for roots in TOGETHER:
        kustomization = {"resources": [tmp_path / "k8s" / root for root in roots]}
        before = [image for root in roots for image in images(kustomize.rendered(files.K8S / root))]
        pinned = images(kustomize.overlaid(kustomization))
        assert sorted(pinned) == sorted(ours.sub(IMAGE, image) for image in before)
        assert IMAGE in pinned


def images(value: object) -> list[str]:
    """Return the images that objects name, in their order."""
    match value:
        case {"image": str(image), **rest}:
            return [image, *images(rest)]
        case dict():
            return [image for each in value.values() for image in images(each)]
        case list():
            return [image for each in value for image in images(each)]
    return []


def test_jobs_have_only_the_rights_that_they_name() -> None:
    assert WORKFLOW["permissions"] == {}
    assert all("permissions" in job for job in WORKFLOW["jobs"].values())
    writers = {
        (name, right)
        for name, job in WORKFLOW["jobs"].items()
        for right, access in job["permissions"].items()
        if access == "write"
    }
    assert writers == {
        ("image", "packages"),
        ("sign", "id-token"),
        ("sign", "packages"),
        ("release", "contents"),
        ("pypi", "id-token"),
    }

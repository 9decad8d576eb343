"""Commands, overlays and figures of docs/deploy.md, and names in the deployment files."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from benchmarks.load import pod_size
from fillmask import __version__
from fillmask.app import create_app
from tests.deploy import files, kustomize
from tests.docs import pages

pytestmark = pytest.mark.processes

PAGE = pages.read(files.DEPLOY_PAGE)
COMMANDS = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
DEPLOYMENT_FILES = [
    files.DOCKERFILE,
    files.DOCKERIGNORE,
    files.COMPOSE,
    *sorted(path for path in files.K8S.rglob("*") if path.is_file()),
]


@pytest.mark.parametrize("path", DEPLOYMENT_FILES, ids=lambda path: path.name)
def test_files_name_settings_and_no_package_index(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", text)) <= pages.VARIABLES
    # Users who build the image choose the package index themselves.
    assert not re.search(r"index-url|find-links|trusted-host|pip\.conf", text)


@pytest.mark.parametrize("text", [PAGE, files.DOCKERFILE.read_text()], ids=["page", "Dockerfile"])
def test_docker_waits_longer_than_the_service(text: str) -> None:
    (stop_timeout_s,) = re.findall(r"docker run[^`]*--stop-timeout (\d+)", text)
    assert int(stop_timeout_s) > files.DEFAULT_GRACE_S


def test_every_kustomization_is_on_the_page() -> None:
    named = re.findall(r"\]\(\.\./k8s/([\w/-]+)/kustomization\.yaml\)", PAGE)
    applied = re.findall(r"apply --kustomize k8s/(\S+)", COMMANDS)
    found = {files.K8S / name for name in (*named, *applied)}
    assert found <= {*kustomize.KUSTOMIZATIONS}
    assert {*kustomize.COMPONENTS, *kustomize.TRANSFORMERS, *kustomize.OVERLAYS.iterdir()} <= found
    assert set(re.findall(r"fillmask:([\d.]+\d)", PAGE)) == {__version__}


def test_overlays_of_the_page_render() -> None:
    overlay, openshift, _ = files.overlays(files.DEPLOY_PAGE)
    objects = kustomize.overlaid(overlay)
    image, of_bundles = overlay["images"]
    (pod,) = kustomize.pods(objects)
    (container,) = pod["containers"]
    assert container["image"] == f"{image['newName']}@{image['digest']}"
    copied = f"{of_bundles['newName']}:{of_bundles['newTag']}"
    assert copied in [each["image"] for each in pod["initContainers"]]
    before = kustomize.settings(kustomize.rendered(kustomize.OVERLAYS / "production"))
    changed = {**before, "FILLMASK_MAX_WAIT_MS": "250"}
    assert kustomize.settings(objects).items() >= changed.items()
    (pod,) = kustomize.pods(kustomize.overlaid(openshift))
    assert "runAsUser" not in pod["securityContext"]


def test_requests_and_limits_come_from_the_measurement() -> None:
    # The CPU limit is a measured pod size. The memory limit is 2 to 4 times the measured peak.
    (pod,) = kustomize.pods(kustomize.rendered(files.BASE))
    limits = pod["containers"][0]["resources"]["limits"]
    peaks = [
        row["peak memory MB"] for row in pod_size.read_rows() if row["CPUs"] == int(limits["cpu"])
    ]
    memory_mb = int(limits["memory"].removesuffix("Mi")) * 2**20 / 1e6
    assert 2 * max(peaks) < memory_mb < 4 * max(peaks)


def test_request_of_the_page_is_answered() -> None:
    objects = kustomize.rendered(kustomize.OVERLAYS / "kserve")
    (container,) = kustomize.containers(objects)
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    (body,) = re.findall(r"-d '(\{.*?\})'", COMMANDS, re.DOTALL)
    (path,) = re.findall(r"example\.com(/v2\S+)", COMMANDS)
    with TestClient(create_app(files.settings_of(variables))) as client:
        assert client.post(path, json=json.loads(body)).status_code == 200

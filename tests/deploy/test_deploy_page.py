"""Settings, links, commands and examples of docs/deploy.md."""

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from benchmarks.load import pod_size
from fillmask import __version__
from fillmask.app import create_app
from tests.deploy import files, kustomize

pytestmark = pytest.mark.processes

PAGE = pod_size.PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
COMMANDS = "\n".join(code for language, code in BLOCK.findall(PAGE) if language == "sh")


def test_every_setting_exists() -> None:
    named = set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", PAGE))
    assert named
    assert named <= files.VARIABLES


def test_every_link_has_a_target() -> None:
    titles = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        if target.startswith("#"):
            assert target[1:] in titles, target
        else:
            path, _, _ = target.partition("#")
            assert (pod_size.PAGE.parent / path).exists(), target


def test_every_kustomization_of_a_command_renders() -> None:
    applied = set(re.findall(r"apply --kustomize (\S+)", COMMANDS))
    assert applied
    for directory in applied:
        assert kustomize.rendered(files.ROOT / directory)


def test_every_kustomization_is_on_the_page() -> None:
    for path in kustomize.KUSTOMIZATIONS:
        if path.parent in {files.BASE, *(files.K8S / "overlays").iterdir()} | {
            *kustomize.COMPONENTS,
            *kustomize.TRANSFORMERS,
        }:
            assert f"(../{path.relative_to(files.ROOT)})" in PAGE


def test_every_make_target_and_module_exists() -> None:
    makefile = (files.ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)`", PAGE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"python -m ([\w.]+)", PAGE):
        assert Path(files.ROOT, *module.split(".")).with_suffix(".py").exists()


def test_image_is_of_this_version() -> None:
    assert set(re.findall(r"fillmask:([\d.]+\d)", PAGE)) == {__version__}


def test_docker_waits_longer_than_the_service() -> None:
    stop_timeout_s = re.search(r"--stop-timeout (\d+)", COMMANDS)
    assert stop_timeout_s
    assert int(stop_timeout_s[1]) > files.DEFAULT_GRACE_S


def test_overlay_of_the_page_renders() -> None:
    overlay = files.overlay_of_the_page()
    objects = kustomize.overlaid(overlay)
    production = kustomize.rendered(files.K8S / "overlays" / "production")
    image, of_bundles = overlay["images"]
    (pod,) = kustomize.pods(objects)
    (container,) = pod["containers"]
    assert container["image"] == f"{image['newName']}@{image['digest']}"
    copied = f"{of_bundles['newName']}:{of_bundles['newTag']}"
    assert copied in [each["image"] for each in pod["initContainers"]]
    chosen, before = (
        {
            name: value
            for each in some
            if each["kind"] == "ConfigMap"
            for name, value in each["data"].items()
        }
        for some in (objects, production)
    )
    assert chosen.items() >= {**before, "FILLMASK_MAX_WAIT_MS": "250"}.items()
    assert container["volumeMounts"][-1]["mountPath"] == "/bundles"


def test_requests_and_limits_come_from_the_measurement() -> None:
    # The CPU limit is a measured pod size. The memory limit is 2 to 4 times the measured peak.
    (pod,) = kustomize.pods(kustomize.rendered(files.BASE))
    limits = pod["containers"][0]["resources"]["limits"]
    measured = [size for size in pod_size.read_sizes() if size.cpus == int(limits["cpu"])]
    assert measured
    memory_mb = int(limits["memory"].removesuffix("Mi")) * 2**20 / 1e6
    peak_mb = max(size.peak_mb for size in measured)
    assert 2 * peak_mb < memory_mb < 4 * peak_mb


def test_request_of_the_page_is_answered() -> None:
    inference_service = kustomize.one(
        kustomize.rendered(files.K8S / "overlays" / "kserve"), "InferenceService"
    )
    (container,) = inference_service["spec"]["predictor"]["containers"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    (body,) = re.findall(r"-d '(\{.*?\})'", COMMANDS, re.DOTALL)
    (path,) = re.findall(r"example\.com(/v2\S+)", COMMANDS)
    assert inference_service["metadata"]["name"] in path.split("/")
    with TestClient(create_app(files.settings_of(variables))) as client:
        assert client.post(path, json=json.loads(body)).status_code == 200

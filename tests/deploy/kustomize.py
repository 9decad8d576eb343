"""Objects that kustomize renders from k8s/."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from tests.deploy import files

MODULES = Path(__file__).parent / "kubernetes" / "node_modules"
# A release of 2022, so that the kubectl of every supported Kubernetes renders the same objects.
# kustomize has a package only for Linux on x86, so other systems need kubectl.
PROGRAM = MODULES / "@install-binary" / "kustomize-linux-x64" / "kustomize-linux-x64"
COMMAND = [str(PROGRAM), "build"] if PROGRAM.exists() else ["kubectl", "kustomize"]

KUSTOMIZATIONS = sorted(files.K8S.rglob("kustomization.yaml"))
ROOTS = [path.parent for path in KUSTOMIZATIONS if files.read_yaml(path)["kind"] == "Kustomization"]
COMPONENTS = [path.parent for path in KUSTOMIZATIONS if path.parent not in ROOTS]
BUNDLES = [path for path in COMPONENTS if path.name.startswith("bundle-")]


def render(directory: Path) -> list[dict[str, Any]]:
    """Return the objects of a kustomization, in the order of `kubectl apply`.

    Raises:
        AssertionError: kustomize fails.
    """
    done = subprocess.run([*COMMAND, directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@cache
def rendered(directory: Path) -> list[dict[str, Any]]:
    return render(directory)


@cache
def rendered_with(component: Path) -> list[dict[str, Any]]:
    """Return the base with a component, rendered as in an overlay outside of k8s/."""
    with tempfile.TemporaryDirectory() as scratch:
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(files.BASE, scratch)],
            "components": [os.path.relpath(component, scratch)],
        }
        Path(scratch, "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        return render(Path(scratch))


def one(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the only object of a kind, e.g. `Deployment`."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def pods(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the specs of the pods that objects create."""
    for each in objects:
        if each["kind"] == "InferenceService":
            yield {key: each["spec"]["predictor"][key] for key in pod_fields(each)}
        elif "template" in each.get("spec", {}):
            yield each["spec"]["template"]["spec"]


def check(each: dict[str, Any], version: str = kubernetes_validate.latest_version()) -> None:
    """Check one of Kubernetes' own objects against the strict schema of a version.

    Raises:
        kubernetes_validate.ValidationError: a field is unknown, missing or of a wrong type.
    """
    kubernetes_validate.validate(each, version, strict=True)


# Fields of an InferenceService's predictor that a pod does not have.
PREDICTOR_FIELDS = {
    "maxReplicas": int,
    "minReplicas": int,
    "scaleMetric": str,
    "scaleTarget": int,
    "timeout": int,
}


def pod_fields(inference_service: dict[str, Any]) -> list[str]:
    """Return the predictor's fields that a pod also has."""
    return [key for key in inference_service["spec"]["predictor"] if key not in PREDICTOR_FIELDS]

"""Objects that kustomize renders from k8s/, once per process."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import yaml

from tests.deploy import files

Objects = list[dict[str, Any]]

MODULES = Path(__file__).parent / "kubernetes" / "node_modules"
# A release of 2022, so that the kubectl of every supported Kubernetes renders the same objects. The
# package is for Linux on x86. kubectl needs a tenth of its CPU time.
OLD = MODULES / "@install-binary" / "kustomize-linux-x64" / "kustomize-linux-x64"
COMMAND = ["kubectl", "kustomize"] if which("kubectl") else [str(OLD), "build"]

OVERLAYS = files.K8S / "overlays"
KUSTOMIZATIONS = sorted(path.parent for path in files.K8S.rglob("kustomization.yaml"))
COMPONENTS = sorted((files.K8S / "components").iterdir())
TRANSFORMERS = sorted((files.K8S / "transformers").iterdir())
ROOTS = [path for path in KUSTOMIZATIONS if path not in {*COMPONENTS, *TRANSFORMERS}]
# kubectl or an overlay sets the namespace of these objects. The comment in their kustomization.yaml
# has the command.
WITHOUT_NAMESPACE = {
    root for root in ROOTS if root.parent.name == "examples" or "monitoring" in root.parts
}
CLUSTER_SCOPED = {"ClusterServingRuntime", "Namespace", "PriorityClass"}

# fields with the name of another object, by the kind of this object
REFERENCES = {
    "backendRefs.name": "Service",
    "claimName": "PersistentVolumeClaim",
    "configMapRef.name": "ConfigMap",
    "model.runtime": "ServingRuntime",
    "parentRefs.name": "Gateway",
    "priorityClassName": "PriorityClass",
    "scaleTargetRef.name": "Deployment",
    "serviceAccountName": "ServiceAccount",
    "template.spec.subdomain": "Service",
}


@cache
def rendered(directory: Path) -> Objects:
    """Return the objects of a kustomization, and those of the base with a component."""
    if directory in COMPONENTS:
        return overlaid({"resources": [files.BASE], "components": [directory]})
    return run(COMMAND, directory)


def run(command: list[str], directory: Path) -> Objects:
    """Return the objects that a program renders.

    Raises:
        AssertionError: the program fails.
    """
    words = [*command, str(directory)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def overlaid(kustomization: dict[str, Any]) -> Objects:
    """Return the objects of an overlay outside of k8s/.

    Args:
        kustomization: fields of its kustomization.yaml, with absolute paths of directories.
    """
    with tempfile.TemporaryDirectory() as scratch:
        relative = {
            key: [os.path.relpath(path, scratch) for path in kustomization[key]]
            for key in files.DIRECTORIES & kustomization.keys()
        }
        header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
        text = yaml.safe_dump(header | kustomization | relative)
        Path(scratch, "kustomization.yaml").write_text(text)
        return run(COMMAND, Path(scratch))


def one(objects: Objects, kind: str) -> dict[str, Any]:
    """Return the only object of a kind, e.g. `Deployment`."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def names(objects: Objects, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in objects if each["kind"] == kind}


def settings(objects: Objects) -> dict[str, str]:
    """Return the service's variables in all ConfigMaps."""
    data = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    return {k: v for each in data for k, v in each.items() if k.startswith("FILLMASK_")}


def pods(objects: Objects) -> Iterator[dict[str, Any]]:
    """Yield the specs of the pods that objects create. KServe's have some fields of its own."""
    runtimes = {
        each["metadata"]["name"]: each["spec"]
        for each in objects
        if each["kind"] == "ServingRuntime"
    }
    for each in objects:
        if each["kind"] == "InferenceService":
            pod = each["spec"]["predictor"]
            if "model" in pod:
                pod = pod | {"containers": runtimes[pod["model"]["runtime"]]["containers"]}
            yield pod
        elif "template" in each.get("spec", {}):
            yield each["spec"]["template"]["spec"]


def containers(objects: Objects) -> Iterator[dict[str, Any]]:
    """Yield the containers of all pods, and the init containers that run as long as the pod."""
    for pod in pods(objects):
        yield from pod["containers"]
        for container in pod.get("initContainers", []):
            if container.get("restartPolicy") == "Always":
                yield container


def labels_of_pods(objects: Objects) -> list[dict[str, str]]:
    return [
        each["spec"]["template"]["metadata"]["labels"]
        for each in objects
        if "template" in each.get("spec", {})
    ]


def selectors(objects: Objects) -> Iterator[dict[str, str]]:
    """Yield the labels by which objects select pods."""
    for each in objects:
        spec = each.get("spec", {})
        match each["kind"]:
            case "Service":
                yield spec["selector"]
            case "Deployment" | "PodDisruptionBudget":
                yield spec["selector"]["matchLabels"]
            case "NetworkPolicy":
                yield spec["podSelector"]["matchLabels"]
    for pod in pods(objects):
        for constraint in pod.get("topologySpreadConstraints", []):
            yield constraint["labelSelector"]["matchLabels"]


def strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings in a value with their paths. Paths have no indices."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, path)
    elif isinstance(value, str):
        yield path, value


def references(objects: Objects) -> set[tuple[str, str]]:
    """Return the kinds and names of the objects to which objects refer, but for Secrets."""
    return {
        (kind, value)
        for each in objects
        for path, value in strings(each)
        for field, kind in REFERENCES.items()
        if path.endswith(f".{field}")
    }

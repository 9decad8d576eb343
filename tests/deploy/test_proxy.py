"""nginx's configuration beside the settings of the service, the manifests and compose.yaml."""

import re

import pytest

from fillmask.http.middleware.deadline import MAX_TIMEOUT_MS
from fillmask.settings import Settings
from tests.deploy import files, kustomize, proxy
from tests.deploy.kustomize import Objects

pytestmark = pytest.mark.processes

CONFIGURATION = proxy.CONFIGURATION.read_text()
COMPOSE = files.read_yaml(files.COMPOSE)["services"]
MOUNT = "/etc/nginx/fillmask"
BYTES = {"k": 2**10, "m": 2**20, "Mi": 2**20, "Gi": 2**30}


def seconds(directive: str) -> int:
    return int(proxy.directive(directive).removesuffix("s"))


def size(value: str) -> int:
    digits, unit = re.fullmatch(r"(\d+)(\w+)", value).groups()  # type: ignore[union-attr]
    return int(digits) * BYTES[unit]


@pytest.fixture(scope="module")
def objects() -> Objects:
    return kustomize.rendered(files.K8S / "overlays" / "production")


def test_proxy_and_service_have_the_same_limit_of_a_body() -> None:
    limit = size(proxy.directive("client_max_body_size"))
    assert limit == Settings.model_fields["max_body_bytes"].default


def test_service_times_out_before_the_proxy_does() -> None:
    assert seconds("proxy_read_timeout") > MAX_TIMEOUT_MS / 1000


def test_proxy_closes_idle_connections_to_the_service_before_uvicorn_does() -> None:
    of_clients, of_service = re.findall(r"\bkeepalive_timeout (\d+)s;", CONFIGURATION)
    assert int(of_service) < 5 < int(of_clients)


def test_proxy_asks_the_port_of_the_service() -> None:
    (name, port) = re.findall(r"server (\w+):(\d+) max_fails", CONFIGURATION)[0]
    assert int(port) == files.image_settings().port
    assert name in COMPOSE


def test_pod_resolves_the_name_of_the_service_to_itself(objects: Objects) -> None:
    (pod,) = kustomize.pods(objects)
    assert pod["hostAliases"] == [{"ip": "127.0.0.1", "hostnames": ["fillmask"]}]


def test_clients_reach_the_service_through_the_proxy_only(objects: Objects) -> None:
    (sidecar,) = kustomize.sidecars(objects)
    by_name = {port["name"]: port["containerPort"] for port in sidecar["ports"]}
    listened = [int(port) for port in re.findall(r"^ *listen (\d+)", CONFIGURATION, re.MULTILINE)]
    assert listened == [by_name["proxy"], by_name["proxy-live"]]
    service = kustomize.one(objects, "Service")["spec"]["ports"]
    targets = {port["name"]: port["targetPort"] for port in service}
    assert targets == {"http": by_name["proxy"], "metrics": "metrics"}
    (rule,) = kustomize.one(objects, "NetworkPolicy")["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [by_name["proxy"], "metrics"]


def test_pods_and_compose_mount_the_configuration_and_run_it(objects: Objects) -> None:
    (pod,) = kustomize.pods(objects)
    (sidecar,) = kustomize.sidecars(objects)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in sidecar["volumeMounts"]}
    (mounted,) = (
        each["data"]
        for each in objects
        if each["kind"] == "ConfigMap"
        and each["metadata"]["name"] == mounts[MOUNT]["configMap"]["name"]
    )
    read = (*proxy.COMPONENT.glob("*.conf"), proxy.START)
    assert mounted == {path.name: path.read_text() for path in read}
    in_compose = COMPOSE["proxy"]
    assert sidecar["command"] == in_compose["entrypoint"] == ["sh", f"{MOUNT}/start.sh"]
    assert in_compose["volumes"] == [
        f"./{path.relative_to(files.ROOT)}:{MOUNT}/{path.name}:ro"
        for path in (proxy.CONFIGURATION, proxy.START)
    ]
    run = f"nginx -c {MOUNT}/nginx.conf"
    assert f"exec {run}\n" in proxy.START.read_text()
    assert f"{run} -s quit" in sidecar["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert sidecar["image"] == in_compose["image"]


def test_bodies_of_all_requests_fit_into_the_volume_of_the_pod(objects: Objects) -> None:
    # Kubernetes evicts a pod whose volume is full, so that clients could end pods.
    (most,) = re.findall(r"limit_conn requests_of_all (\d+)", CONFIGURATION)
    bodies = int(most) * size(proxy.directive("client_max_body_size"))
    (pod,) = kustomize.pods(objects)
    (volume,) = (volume for volume in pod["volumes"] if "emptyDir" in volume)
    assert bodies < size(volume["emptyDir"]["sizeLimit"])
    # In compose the files are in memory.
    assert bodies < size(COMPOSE["proxy"]["mem_limit"].replace("1g", "1Gi"))
    assert proxy.directive("proxy_max_temp_file_size") == "0"


def test_proxy_quits_while_the_service_still_accepts_requests(objects: Objects) -> None:
    (sidecar,) = kustomize.sidecars(objects)
    (waited,) = re.findall(r"sleep (\d+) ", sidecar["lifecycle"]["preStop"]["exec"]["command"][-1])
    variables = next(
        each["data"]
        for each in objects
        if each["kind"] == "ConfigMap" and "FILLMASK_DRAIN_DELAY_S" in each["data"]
    )
    last_request_s = int(waited) + seconds("keepalive_min_timeout")
    assert int(waited) >= 5  # endpoints take some seconds to reach every node
    assert last_request_s < files.settings_of(variables).drain_delay_s


def test_container_that_scales_is_that_of_the_service(objects: Objects) -> None:
    (container,) = kustomize.containers(objects)
    triggers = kustomize.one(objects, "ScaledObject")["spec"]["triggers"]
    (cpu,) = (trigger for trigger in triggers if trigger["type"] == "cpu")
    assert cpu["metadata"]["containerName"] == container["name"]

"""The Kubernetes base: it stops as gently as the service does, and asks for what was measured."""

import pytest
from dotenv import dotenv_values

from service.http.server import _FORCED_EXIT_AFTER_S
from service.settings import ENV_PREFIX, Settings
from tests.deploy import files, kustomize

OBJECTS = kustomize.rendered(files.BASE)
DEPLOYMENT = kustomize.one(OBJECTS, "Deployment")["spec"]
POD = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
SETTINGS = kustomize.one(OBJECTS, "ConfigMap")["data"]
PROBES = ["startupProbe", "readinessProbe", "livenessProbe"]
SELECTED = {"app.kubernetes.io/name": "fillmask"}


def test_selectors_find_the_pod() -> None:
    """Whatever is about the pods reaches them, and none selects by version."""
    assert DEPLOYMENT["template"]["metadata"]["labels"].items() > SELECTED.items()
    assert DEPLOYMENT["selector"]["matchLabels"] == SELECTED
    assert kustomize.one(OBJECTS, "Service")["spec"]["selector"] == SELECTED
    budget = kustomize.one(OBJECTS, "PodDisruptionBudget")["spec"]
    assert budget["selector"]["matchLabels"] == SELECTED
    policy = kustomize.one(OBJECTS, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"] == SELECTED


def test_service_port_leads_to_the_default_port() -> None:
    """Service, container and the service's own default agree."""
    (port,) = CONTAINER["ports"]
    assert port == {"name": "http", "containerPort": files.DEFAULT_PORT}
    (published,) = kustomize.one(OBJECTS, "Service")["spec"]["ports"]
    assert published["targetPort"] == "http"


@pytest.mark.parametrize("probe", PROBES)
def test_probes_ask_paths_that_exist(probe: str, paths: set[str]) -> None:
    """A probe of a wrong path would never let a pod be ready, or would kill it again and again."""
    asked = CONTAINER[probe]["httpGet"]
    assert asked["path"] in paths
    assert asked["port"] == "http"


def test_liveness_does_not_depend_on_readiness() -> None:
    """A pod that drains or is overloaded is taken out of the Service, not killed."""
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert CONTAINER["startupProbe"]["httpGet"]["path"] == "/health/ready"


def test_namespace_admits_restricted_pods_only() -> None:
    """The cluster holds every pod against the standard that the tests hold these against."""
    labels = kustomize.one(OBJECTS, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_root_file_system_is_read_only() -> None:
    """Nothing can be written; the restricted standard does not ask for it."""
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] is True


def test_pod_runs_as_the_images_user() -> None:
    """The manifest and the image name the same user and group."""
    context = POD["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == files.image_user()


def test_pod_holds_no_token() -> None:
    """The service cannot speak to the Kubernetes API."""
    account = kustomize.one(OBJECTS, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert POD["automountServiceAccountToken"] is False
    assert POD["serviceAccountName"] == account["metadata"]["name"]


def test_pod_is_given_no_variables_of_other_services() -> None:
    """A Service named fillmask would set FILLMASK_ variables that stop the start."""
    assert POD["enableServiceLinks"] is False


def test_pod_is_given_whole_cpus() -> None:
    """The number of threads follows the CPU limit, and each has a CPU of its own."""
    resources = CONTAINER["resources"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"].keys() == {"cpu", "memory"}
    assert int(resources["limits"]["cpu"]) >= 1


def test_settings_are_settings_that_are_allowed() -> None:
    """The service starts with them."""
    chosen = {name.removeprefix(ENV_PREFIX).lower(): value for name, value in SETTINGS.items()}
    Settings(**chosen)
    assert dotenv_values(files.BASE / "settings.env") == SETTINGS
    assert CONTAINER["envFrom"][0]["configMapRef"]["name"].startswith("fillmask-")


def test_change_of_settings_rolls_the_pods() -> None:
    """The pod names a ConfigMap whose name has a hash of what is in it."""
    name = kustomize.one(OBJECTS, "ConfigMap")["metadata"]["name"]
    assert CONTAINER["envFrom"] == [{"configMapRef": {"name": name}}]
    with_bundles = kustomize.rendered_with(kustomize.COMPONENTS[0])
    assert kustomize.one(with_bundles, "ConfigMap")["metadata"]["name"] != name


def test_pod_is_not_killed_while_it_drains() -> None:
    """The kubelet waits for the drain delay, the grace, what ends the rest, and for more."""
    delay_s, grace_s = (
        int(SETTINGS[f"{ENV_PREFIX}{name}"]) for name in ("DRAIN_DELAY_S", "SHUTDOWN_GRACE_S")
    )
    assert delay_s >= 5
    assert POD["terminationGracePeriodSeconds"] > delay_s + grace_s + _FORCED_EXIT_AFTER_S


def test_pod_needs_no_hook_and_no_shell() -> None:
    """The service itself waits until nobody sends it requests any more."""
    assert "lifecycle" not in CONTAINER
    assert not any("exec" in CONTAINER[probe] for probe in PROBES)


def test_network_lets_requests_in_and_nothing_out() -> None:
    """One port in; no names are looked up, nothing is fetched."""
    policy = kustomize.one(OBJECTS, "NetworkPolicy")["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": "http"}]}]
    assert policy["egress"] == []


def test_drain_of_nodes_goes_on_with_one_pod() -> None:
    """A budget of unavailable pods holds up no drain for ever; one of available pods would."""
    budget = kustomize.one(OBJECTS, "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert "minAvailable" not in budget


def test_autoscaler_scales_this_deployment() -> None:
    """Up fast, down slowly; and nobody else says how many pods there are."""
    scaler = kustomize.one(OBJECTS, "HorizontalPodAutoscaler")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "fillmask"
    assert "replicas" not in DEPLOYMENT
    up, down = (
        scaler["behavior"][way]["stabilizationWindowSeconds"] for way in ("scaleUp", "scaleDown")
    )
    assert up == 0
    assert down >= 300


def test_rollout_keeps_the_old_pod_until_the_new_one_is_ready() -> None:
    """A bad image or bundle never takes the service down."""
    assert DEPLOYMENT["strategy"]["rollingUpdate"]["maxUnavailable"] == 0

"""The Kubernetes base: valid, restricted, and it stops as gently as the service does."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from service import __version__
from tests.deploy import files

OLDEST_KUBERNETES = "1.30"
DEPLOYMENT = files.manifest("Deployment")["spec"]
POD = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
KUSTOMIZATION = files.read_yaml(files.KUSTOMIZATION)
PROBES = ["startupProbe", "readinessProbe", "livenessProbe"]


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("path", files.MANIFESTS, ids=lambda path: path.name)
def test_manifest_satisfies_the_schema(path: Path, version: str) -> None:
    """Every field is one that Kubernetes knows, and of its type."""
    kubernetes_validate.validate(files.read_yaml(path), version, strict=True)


def test_schema_refuses_a_misspelled_field() -> None:
    """The check above can fail."""
    misspelled = files.manifest("Service") | {"sepc": {}}
    with pytest.raises(kubernetes_validate.ValidationError, match="sepc"):
        kubernetes_validate.validate(misspelled, OLDEST_KUBERNETES, strict=True)


def test_kustomization_takes_every_manifest() -> None:
    """No file lies in the base unused."""
    here = {path.name for path in files.MANIFESTS if path.parent == files.KUSTOMIZATION.parent}
    assert set(KUSTOMIZATION["resources"]) == here


def test_kustomization_names_the_version() -> None:
    """The image's tag and the version label are this version."""
    (image,) = KUSTOMIZATION["images"]
    assert image == {"name": CONTAINER["image"], "newTag": __version__}
    (labels,) = KUSTOMIZATION["labels"]
    assert labels["pairs"]["app.kubernetes.io/version"] == __version__


def test_selectors_find_the_pod() -> None:
    """The Deployment owns its pods, the Service reaches them; neither selects by version."""
    labels = DEPLOYMENT["template"]["metadata"]["labels"]
    assert DEPLOYMENT["selector"]["matchLabels"] == labels
    assert files.manifest("Service")["spec"]["selector"] == labels
    (set_by_kustomize,) = KUSTOMIZATION["labels"]
    assert set_by_kustomize["pairs"].items() >= labels.items()
    assert not set_by_kustomize.get("includeSelectors", False)


def test_service_port_leads_to_the_default_port() -> None:
    """Service, container and the service's own default agree."""
    (port,) = CONTAINER["ports"]
    assert port == {"name": "http", "containerPort": files.DEFAULT_PORT}
    (published,) = files.manifest("Service")["spec"]["ports"]
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


def test_pod_satisfies_the_restricted_standard() -> None:
    """Pod Security's strictest profile admits the pod."""
    allowed_at_pod_level = {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert POD["securityContext"].items() >= allowed_at_pod_level.items()
    assert POD["securityContext"]["runAsUser"] > 0
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & POD.keys()
    container: dict[str, Any] = CONTAINER["securityContext"]
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all("host" not in CONTAINER[probe]["httpGet"] for probe in PROBES)


def test_pod_runs_as_the_images_user() -> None:
    """The manifest and the image name the same user and group."""
    context = POD["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == files.image_user()


def test_pod_holds_no_token() -> None:
    """The service cannot speak to the Kubernetes API."""
    account = files.manifest("ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert POD["automountServiceAccountToken"] is False
    assert POD["serviceAccountName"] == account["metadata"]["name"]


def test_pod_is_given_no_variables_of_other_services() -> None:
    """A Service named fillmask would set FILLMASK_ variables that stop the start."""
    assert POD["enableServiceLinks"] is False


def test_pod_has_requests_and_limits() -> None:
    """The scheduler knows what the pod needs, and the number of threads follows the CPU limit."""
    assert CONTAINER["resources"]["requests"].keys() == {"cpu", "memory"}
    assert CONTAINER["resources"]["limits"].keys() == {"cpu", "memory"}


def test_pod_is_not_killed_while_it_drains() -> None:
    """The kubelet waits for the preStop pause and the drain, and for more."""
    pause_s = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert POD["terminationGracePeriodSeconds"] > pause_s + files.DEFAULT_GRACE_S


def test_rollout_keeps_the_old_pod_until_the_new_one_is_ready() -> None:
    """A bad image or bundle never takes the service down."""
    assert DEPLOYMENT["strategy"]["rollingUpdate"]["maxUnavailable"] == 0

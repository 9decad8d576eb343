"""Pod Security of every pod and namespace in k8s/."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import files, kustomize, pod_security

pytestmark = pytest.mark.processes

# for each rule, fields of the pod and of its first container that break it
BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "host_process": ({}, {"securityContext": {"windowsOptions": {"hostProcess": True}}}),
    "host_namespaces": ({"hostPID": True}, {}),
    "privileged": ({}, {"securityContext": {"privileged": True}}),
    "host_ports": ({}, {"ports": [{"containerPort": 8000, "hostPort": 80}]}),
    "host_probes": ({}, {"livenessProbe": {"httpGet": {"host": "example.com", "port": 80}}}),
    "app_armor": ({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, {}),
    "se_linux": ({"securityContext": {"seLinuxOptions": {"role": "sysadm_r"}}}, {}),
    "proc_mount": ({}, {"securityContext": {"procMount": "Unmasked"}}),
    "sysctls": ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, {}),
    "volume_types": ({"volumes": [{"name": "all", "hostPath": {"path": "/"}}]}, {}),
    "privilege_escalation": ({}, {"securityContext": {}}),
    "run_as_non_root": ({"securityContext": {}}, {"securityContext": {}}),
    "run_as_user": ({}, {"securityContext": {"runAsUser": 0}}),
    "seccomp": ({"securityContext": {}}, {"securityContext": {}}),
    "capabilities": (
        {},
        {"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}},
    ),
}


@pytest.mark.parametrize("rule", pod_security.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("root", kustomize.ROOTS, ids=lambda root: root.name)
def test_pods_are_restricted(root: Path, rule: pod_security.Rule) -> None:
    for pod in kustomize.pods(kustomize.rendered(root)):
        assert list(rule(pod)) == []


@pytest.mark.parametrize("rule", pod_security.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("component", kustomize.COMPONENTS, ids=lambda path: path.name)
def test_pods_with_a_component_are_restricted(component: Path, rule: pod_security.Rule) -> None:
    for pod in kustomize.pods(kustomize.rendered_with(component)):
        assert list(rule(pod)) == []


@pytest.mark.parametrize("rule", pod_security.RULES, ids=lambda rule: rule.__name__)
def test_rule_can_be_broken(rule: pod_security.Rule) -> None:
    of_pod, of_container = BROKEN[rule.__name__]
    deployment = kustomize.one(kustomize.rendered(files.BASE), "Deployment")
    pod = copy.deepcopy(deployment["spec"]["template"]["spec"]) | of_pod
    pod["containers"][0] |= of_container
    assert list(rule(pod))


@pytest.mark.parametrize("root", kustomize.ROOTS, ids=lambda root: root.name)
def test_namespaces_enforce_the_standard(root: Path) -> None:
    for each in kustomize.rendered(root):
        if each["kind"] == "Namespace":
            assert each["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_every_root_with_pods_is_checked() -> None:
    seen = {root.name for root in kustomize.ROOTS if list(kustomize.pods(kustomize.rendered(root)))}
    assert {"base", "local", "production", "kserve", "kserve-runtime"} <= seen

"""Rules of the Pod Security Standard `restricted`.

The rules are those of Kubernetes' admission, including the standard `baseline`. A rule is a
function from the pod's spec to the places that break the rule.
"""

from collections.abc import Callable, Iterator
from typing import Any

Spec = dict[str, Any]
Rule = Callable[[Spec], Iterator[str]]

VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
PROFILES = {"RuntimeDefault", "Localhost"}


def containers(pod: Spec) -> Iterator[Spec]:
    """Yield all containers of a pod, including init containers and ephemeral containers."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from pod.get(key, [])


def contexts(pod: Spec) -> Iterator[tuple[str, Spec]]:
    """Yield the security contexts of the pod and of each container, with their names."""
    yield "the pod", pod.get("securityContext", {})
    for container in containers(pod):
        yield container["name"], container.get("securityContext", {})


def in_every_container(pod: Spec, key: str, is_allowed: Callable[[Any], bool]) -> Iterator[str]:
    """Yield the containers in which a field of the security context has a forbidden value.

    A container without the field takes the pod's value.
    """
    of_pod = pod.get("securityContext", {}).get(key)
    for container in containers(pod):
        if not is_allowed(container.get("securityContext", {}).get(key, of_pod)):
            yield container["name"]


def host_process(pod: Spec) -> Iterator[str]:
    """Yield the contexts that start processes of a Windows host."""
    for name, context in contexts(pod):
        if context.get("windowsOptions", {}).get("hostProcess"):
            yield name


def host_namespaces(pod: Spec) -> Iterator[str]:
    yield from (key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key))


def privileged(pod: Spec) -> Iterator[str]:
    yield from (name for name, context in contexts(pod) if context.get("privileged"))


def host_ports(pod: Spec) -> Iterator[str]:
    for container in containers(pod):
        if any(port.get("hostPort") for port in container.get("ports", [])):
            yield container["name"]


def host_probes(pod: Spec) -> Iterator[str]:
    """Yield the containers whose probes or hooks name a host."""
    for container in containers(pod):
        hooks = container.get("lifecycle", {})
        probes = [
            container.get(f"{kind}Probe", {}) for kind in ("startup", "readiness", "liveness")
        ]
        for asked in (*probes, *hooks.values()):
            if any(asked.get(way, {}).get("host") for way in ("httpGet", "tcpSocket")):
                yield container["name"]


def app_armor(pod: Spec) -> Iterator[str]:
    """Yield the contexts with an AppArmor profile other than RuntimeDefault and Localhost."""
    for name, context in contexts(pod):
        if context.get("appArmorProfile", {"type": "RuntimeDefault"})["type"] not in PROFILES:
            yield name


def se_linux(pod: Spec) -> Iterator[str]:
    """Yield the contexts that set an SELinux user or role, or a type outside of SELINUX_TYPES."""
    for name, context in contexts(pod):
        options = context.get("seLinuxOptions", {})
        other = options.get("type", "") not in SELINUX_TYPES
        if other or options.get("user") or options.get("role"):
            yield name


def proc_mount(pod: Spec) -> Iterator[str]:
    """Yield the contexts with a `procMount` other than `Default`."""
    yield from (
        name for name, context in contexts(pod) if context.get("procMount", "Default") != "Default"
    )


def sysctls(pod: Spec) -> Iterator[str]:
    """Yield the kernel settings that are not on the safe list."""
    for setting in pod.get("securityContext", {}).get("sysctls", []):
        if setting["name"] not in SYSCTLS:
            yield setting["name"]


def volume_types(pod: Spec) -> Iterator[str]:
    """Yield the volumes whose type is not in VOLUMES."""
    for volume in pod.get("volumes", []):
        if not volume.keys() - {"name"} <= VOLUMES:
            yield volume["name"]


def privilege_escalation(pod: Spec) -> Iterator[str]:
    """Yield the containers that allow the escalation of privileges."""
    for container in containers(pod):
        if container.get("securityContext", {}).get("allowPrivilegeEscalation") is not False:
            yield container["name"]


def run_as_non_root(pod: Spec) -> Iterator[str]:
    """Yield the containers whose runAsNonRoot, by default the pod's, is not true."""
    yield from in_every_container(pod, "runAsNonRoot", lambda value: value is True)


def run_as_user(pod: Spec) -> Iterator[str]:
    """Yield the contexts that set user 0."""
    yield from (name for name, context in contexts(pod) if context.get("runAsUser") == 0)


def seccomp(pod: Spec) -> Iterator[str]:
    """Yield the containers whose seccomp profile, by default the pod's, is forbidden."""
    yield from in_every_container(
        pod, "seccompProfile", lambda value: bool(value) and value["type"] in PROFILES
    )


def capabilities(pod: Spec) -> Iterator[str]:
    """Yield the containers that keep a capability other than NET_BIND_SERVICE."""
    for container in containers(pod):
        wanted = container.get("securityContext", {}).get("capabilities", {})
        added = set(wanted.get("add", []))
        if "ALL" not in wanted.get("drop", []) or not added <= {"NET_BIND_SERVICE"}:
            yield container["name"]


RULES: list[Rule] = [
    host_process,
    host_namespaces,
    privileged,
    host_ports,
    host_probes,
    app_armor,
    se_linux,
    proc_mount,
    sysctls,
    volume_types,
    privilege_escalation,
    run_as_non_root,
    run_as_user,
    seccomp,
    capabilities,
]

"""Namespace of every object that the kustomizations and the overlays of docs/deploy.md create."""

from pathlib import Path
from typing import Any

import pytest

from tests.deploy import files, kustomize
from tests.deploy.kustomize import Objects

pytestmark = pytest.mark.processes
FIRST = "fillmask"


def namespaces(objects: Objects) -> set[str | None]:
    """Return the namespaces of the objects that belong to a namespace."""
    return {
        each["metadata"].get("namespace")
        for each in objects
        if each["kind"] not in kustomize.CLUSTER_SCOPED
    }


@pytest.mark.parametrize("root", kustomize.ROOTS, ids=lambda root: root.name)
def test_every_object_has_the_namespace_unless_kubectl_sets_it(root: Path) -> None:
    objects = kustomize.rendered(root)
    if all(each["kind"] in kustomize.CLUSTER_SCOPED for each in objects):
        assert root.name == "kserve-cluster-runtime"
    elif root in kustomize.WITHOUT_NAMESPACE:
        assert namespaces(objects) == {None}
        command = f"kubectl apply --namespace {FIRST} --kustomize {root.relative_to(files.ROOT)}\n"
        assert command in (root / "kustomization.yaml").read_text()
    else:
        assert namespaces(objects) == {FIRST}
        created = kustomize.names(objects, "Namespace")
        assert created == {FIRST}


@pytest.mark.parametrize("component", kustomize.COMPONENTS, ids=lambda path: path.name)
def test_every_object_has_the_namespace_with_a_component(component: Path) -> None:
    assert namespaces(kustomize.rendered_with(component)) == {FIRST}


@pytest.mark.parametrize("overlay", ["base", "page"])
def test_an_overlay_sets_the_namespace_of_every_object(overlay: str) -> None:
    # All components at once add the objects of each. The page's overlay is one of production, which
    # has the proxy already.
    components = list(kustomize.COMPONENTS)
    kustomization: dict[str, Any] = {"resources": [files.BASE]}
    if overlay == "page":
        kustomization = files.overlay_of_the_page()
        assert namespaces(kustomize.overlaid(kustomization)) == {FIRST}
        components = [path for path in components if path.name != "proxy"]
    changed = kustomization | {"components": components, "namespace": "french"}
    assert namespaces(kustomize.overlaid(changed)) == {"french"}


def test_identity_needs_a_namespace() -> None:
    with pytest.raises(KeyError, match="namespace"):
        kustomize.identity({"kind": "Service", "metadata": {"name": FIRST}})
    cluster_scoped = {"kind": "PriorityClass", "metadata": {"name": FIRST}}
    assert kustomize.identity(cluster_scoped) == ("PriorityClass", "", FIRST)

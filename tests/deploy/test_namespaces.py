"""Namespace of every object that the kustomizations and the overlays of docs/deploy.md create."""

from pathlib import Path
from typing import Any

import pytest

from tests.deploy import files, kustomize
from tests.deploy.kustomize import Objects

OVERLAYS = files.K8S / "overlays"
FIRST = "fillmask"


def namespaces(objects: Objects) -> set[str | None]:
    """Return the namespaces of the objects that belong to a namespace."""
    return {
        each["metadata"].get("namespace")
        for each in objects
        if each["kind"] not in kustomize.CLUSTER_SCOPED
    }


def overlay_of_the_page() -> dict[str, Any]:
    """Return the first overlay of docs/deploy.md, with absolute paths."""
    overlay = files.objects_of_the_page("Kustomization")[0]
    for key in ("resources", "components"):
        overlay[key] = [files.ROOT / path.removeprefix("../fillmask/") for path in overlay[key]]
    return overlay


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
@pytest.mark.parametrize("overlay", ["base", "production", "page"])
def test_every_object_has_the_namespace_with_a_component(overlay: str, component: Path) -> None:
    if overlay == "page":
        kustomization = overlay_of_the_page() | {"components": [component]}
    else:
        path = files.BASE if overlay == "base" else OVERLAYS / overlay
        kustomization = {"resources": [path], "components": [component]}
    if overlay != "base" and component.name == "proxy":
        del kustomization["components"]  # part of the overlay
    objects = kustomize.render_overlay(kustomization)
    assert namespaces(objects) == {FIRST}
    kustomization["namespace"] = "french"
    assert namespaces(kustomize.render_overlay(kustomization)) == {"french"}


def test_identity_needs_a_namespace() -> None:
    with pytest.raises(KeyError, match="namespace"):
        kustomize.identity({"kind": "Service", "metadata": {"name": FIRST}})
    cluster_scoped = {"kind": "PriorityClass", "metadata": {"name": FIRST}}
    assert kustomize.identity(cluster_scoped) == ("PriorityClass", "", FIRST)

"""Two releases in one cluster, which share no name, selector, reference or query.

The second release is the overlay of docs/deploy.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser
import pytest

from tests.deploy import files, kustomize
from tests.deploy.kustomize import Objects

OVERLAYS = files.K8S / "overlays"
QUERIES = files.K8S / "transformers" / "queries"
FIRST = "fillmask"
# Fields that name no object of the release: containers, labels, groups of rules, model formats.
SHARED = {
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "spec.predictor.containers.name",
    "spec.predictor.model.modelFormat.name",
    "spec.supportedModelFormats.name",
    "spec.template.spec.containers.name",
    "spec.groups.name",
    "spec.podFailurePolicy.rules.onExitCodes.containerName",
}


class Releases(NamedTuple):
    first: Objects
    second: Objects


def second_release(directories: list[Path], *, queries: bool) -> dict[str, Any]:
    """Return the overlay of docs/deploy.md with other resources."""
    (overlay,) = (
        each for each in files.objects_of_the_page("Kustomization") if "nameSuffix" in each
    )
    assert overlay["resources"] == [
        "../fillmask/k8s/overlays/production",
        "../fillmask/k8s/monitoring",
    ]
    assert overlay["transformers"] == ["../fillmask/k8s/transformers/queries"]
    return {**overlay, "resources": directories, "transformers": [QUERIES] if queries else []}


PRODUCTION = [OVERLAYS / "production", files.K8S / "monitoring"]
EXAMPLE = files.K8S / "examples" / "whole-file"


@pytest.fixture(
    scope="module",
    params=["production", "same namespace", "base", "kserve", "kserve-runtime", "cluster runtime"],
)
def releases(request: pytest.FixtureRequest) -> Releases:
    directories = {
        "production": [*PRODUCTION, EXAMPLE],
        "same namespace": [*PRODUCTION, EXAMPLE],
        "base": [files.BASE],
        "kserve": [OVERLAYS / "kserve"],
        "kserve-runtime": [OVERLAYS / "kserve-runtime"],
        "cluster runtime": [OVERLAYS / "kserve-cluster-runtime"],
    }[request.param]
    overlay = second_release(directories, queries=request.param in {"production", "same namespace"})
    if request.param == "same namespace":
        overlay["namespace"] = FIRST
    first = [each for path in directories for each in kustomize.applied(path, FIRST)]
    return Releases(first, kustomize.render_overlay(overlay))


def strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings in a value with their paths. Paths have no indices."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, path)
    elif isinstance(value, str):
        yield path, value


def queries(objects: Objects) -> Iterator[str]:
    """Yield the PromQL expressions of scalers and alerts."""
    for each in objects:
        if each["kind"] == "ScaledObject":
            for trigger in each["spec"]["triggers"]:
                if trigger["type"] == "prometheus":
                    yield trigger["metadata"]["query"]
        if each["kind"] == "PrometheusRule":
            for group in each["spec"]["groups"]:
                yield from (rule["expr"] for rule in group["rules"])


def test_no_name_is_the_same(releases: Releases) -> None:
    first, second = ({kustomize.identity(each) for each in objects} for objects in releases)
    assert len(second) == len(first)
    shared = first & second
    # Two releases in one namespace share only the namespace itself.
    assert shared <= {("Namespace", "", FIRST)}


def test_selectors_find_the_pods_of_their_own_release_only(releases: Releases) -> None:
    for objects, others in (releases, releases[::-1]):
        own_pods, other_pods = (list(kustomize.templates(each)) for each in (objects, others))
        for selector in kustomize.selectors(objects):
            assert any(selector.items() <= labels.items() for labels in own_pods)
            assert not any(selector.items() <= labels.items() for labels in other_pods)


def test_monitors_find_the_service_of_their_own_release_only(releases: Releases) -> None:
    for objects, others in (releases, releases[::-1]):
        for each in objects:
            if each["kind"] == "ServiceMonitor":
                selector = each["spec"]["selector"]["matchLabels"].items()
                own, other = (kustomize.one(some, "Service") for some in (objects, others))
                assert selector <= own["metadata"]["labels"].items()
                assert not selector <= other["metadata"]["labels"].items()


def test_references_lead_to_objects_of_the_own_release(releases: Releases) -> None:
    first, second = (kustomize.references(objects) for objects in releases)
    assert len(first) == len(second)
    assert not first & second
    assert second <= {(each["kind"], each["metadata"]["name"]) for each in releases.second}


def test_nothing_else_has_the_name_of_the_first_release(releases: Releases) -> None:
    for each in releases.second:
        for path, value in strings(each):
            if value == FIRST and not path.endswith(tuple(SHARED)):
                # two releases in one namespace
                assert path == "metadata.namespace" or each["kind"] == "Namespace", path


def test_every_host_name_is_another(releases: Releases) -> None:
    first, second = (
        {
            listener["hostname"]
            for each in objects
            if each["kind"] == "Gateway"
            for listener in each["spec"]["listeners"]
        }
        for objects in releases
    )
    assert len(first) == len(second)
    assert not first & second


def test_queries_select_or_separate_releases(releases: Releases) -> None:
    for objects in releases:
        for query in queries(objects):
            promql_parser.parse(query)
            service = kustomize.one(objects, "Service")["metadata"]
            matchers = dict(re.findall(r'\b(namespace|job)="([^"]*)"', query))
            own = {"namespace": service["namespace"], "job": service["name"]}
            assert matchers in ({}, own), query
            if not matchers:
                assert is_per_release(query), query


def is_per_release(query: str) -> bool:
    """Return whether every aggregation of a query keeps the labels `namespace` and `job`."""
    kept = re.findall(r"\b(?:sum|min|max|avg|count|absent)\b(?: by \(([^)]*)\))?", query)
    return all({"namespace", "job"} <= set(labels.split(", ")) for labels in kept)


def test_check_of_queries_can_fail() -> None:
    assert is_per_release("fillmask_ready == 0")
    assert is_per_release("sum by (namespace, job) (fillmask_ready)")
    assert not is_per_release("sum(fillmask_ready)")
    assert not is_per_release("sum by (job) (fillmask_ready)")
    assert not is_per_release("absent(fillmask_ready == 1)")

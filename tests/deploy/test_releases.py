"""Two releases in one cluster, which share no name, selector, reference, host name or query."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from tests.deploy import files, kustomize, monitoring, releases
from tests.deploy.kustomize import Objects
from tests.deploy.releases import Releases

OVERLAYS = files.K8S / "overlays"
pytestmark = pytest.mark.processes
# Fields that name no object of the release: containers, labels, groups of rules, model formats.
SHARED = {
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "spec.predictor.containers.name",
    "spec.predictor.model.modelFormat.name",
    "spec.supportedModelFormats.name",
    "spec.template.spec.containers.image",
    "spec.template.spec.containers.name",
    "spec.template.spec.hostAliases.hostnames",
    "spec.triggers.metadata.containerName",
    "data.nginx.conf",
    "spec.groups.name",
    "spec.podFailurePolicy.rules.onExitCodes.containerName",
}


@pytest.fixture(
    scope="module",
    params=["production", "one namespace", "base and cluster runtime", "kserve", "kserve-runtime"],
)
def both(request: pytest.FixtureRequest) -> Releases:
    match request.param:
        case "production" | "one namespace":
            return releases.of_production(in_one_namespace=request.param == "one namespace")
        case "base and cluster runtime":
            return releases.of_directories(files.BASE, OVERLAYS / "kserve-cluster-runtime")
        case overlay:
            return releases.of_directories(OVERLAYS / overlay)


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
    yield from (rule["expr"] for rule in monitoring.rules(objects))


def test_no_name_is_the_same(both: Releases) -> None:
    first, second = ({kustomize.identity(each) for each in objects} for objects in both)
    assert len(first) == len(both.first)
    assert len(second) == len(both.second)
    assert not first & second


def test_second_release_lacks_only_what_the_cluster_has_once(both: Releases) -> None:
    # A second copy of the dashboard has the same uid and overwrites the first copy. Prometheus
    # evaluates a second copy of the other rules again.
    first, second = (Counter(each["kind"] for each in objects) for objects in both)
    lacking: Counter[str] = Counter()
    if monitoring.rules(both.first):
        lacking.update(["ConfigMap", "PrometheusRule"])
        (rule,) = monitoring.rules(both.second)
        assert rule["alert"] == releases.UNAVAILABLE
        assert not dashboards(both.second)
        assert dashboards(both.first)
    if both.in_one_namespace:
        lacking.update(["Namespace"])
    assert first - second == lacking
    assert not second - first


def dashboards(objects: Objects) -> list[str]:
    """Return the names of the files that Grafana's sidecar reads."""
    return [
        name
        for each in objects
        if "grafana_dashboard" in each["metadata"]["labels"]
        for name in each["data"]
    ]


def test_selectors_find_the_pods_of_their_own_release_only(both: Releases) -> None:
    for objects, others in (both, both[::-1]):
        own_pods, other_pods = (list(kustomize.templates(each)) for each in (objects, others))
        for selector in kustomize.selectors(objects):
            assert any(selector.items() <= labels.items() for labels in own_pods)
            assert not any(selector.items() <= labels.items() for labels in other_pods)


def test_monitors_find_the_service_of_their_own_release_only(both: Releases) -> None:
    for objects, others in (both, both[::-1]):
        for each in objects:
            if each["kind"] == "ServiceMonitor":
                selector = each["spec"]["selector"]["matchLabels"].items()
                own, other = (releases.service_of(some) for some in (objects, others))
                assert selector <= own["metadata"]["labels"].items()
                assert not selector <= other["metadata"]["labels"].items()


def test_references_lead_to_objects_of_the_own_release(both: Releases) -> None:
    first, second = (kustomize.references(objects) for objects in both)
    assert len(first) == len(second)
    assert not first & second
    assert second <= {(each["kind"], each["metadata"]["name"]) for each in both.second}


def test_nothing_else_has_a_name_of_the_first_release(both: Releases) -> None:
    names = {each["metadata"]["name"] for each in both.first}
    if both.in_one_namespace:
        names.remove(releases.FIRST)  # the name of the namespace
    # `python -m fillmask.cli` names no object
    old_name = re.compile(rf"(?<![\w/-])({'|'.join(map(re.escape, names))})(?![\w-]|\.cli\b)")
    for each in both.second:
        for path, value in strings(each):
            if not path.endswith(tuple(SHARED)):
                assert not old_name.search(value), (each["kind"], path)


def listeners(objects: Objects) -> Iterator[dict[str, Any]]:
    for each in objects:
        if each["kind"] == "Gateway":
            yield from each["spec"]["listeners"]


def test_every_host_name_and_certificate_is_another(both: Releases) -> None:
    for field in ("hostname", "tls"):
        first, second = ([each[field] for each in listeners(objects)] for objects in both)
        assert len(first) == len(second)
        assert all(value not in first for value in second)


def test_queries_select_or_separate_releases(both: Releases) -> None:
    for objects in both:
        for query in queries(objects):
            promql_parser.parse(query)
            matchers = dict(re.findall(r'\b(namespace|job)="([^"]*)"', query))
            assert matchers in ({}, releases.own_labels(objects)), query
            if not matchers:
                assert is_per_release(query), query


def is_per_release(query: str) -> bool:
    """Return whether every aggregation and match keeps the labels `namespace` and `job`."""
    kept = re.findall(r"\b(?:sum|min|max|avg|count|absent)\b(?: by \(([^)]*)\))?", query)
    kept += re.findall(r"\bon \(([^)]*)\)", query)
    return all({"namespace", "job"} <= set(labels.split(", ")) for labels in kept)


def test_check_of_queries_can_fail() -> None:
    assert is_per_release("fillmask_ready == 0")
    assert is_per_release("sum by (namespace, job) (fillmask_ready)")
    assert not is_per_release("sum(fillmask_ready)")
    assert not is_per_release("sum by (job) (fillmask_ready)")
    assert not is_per_release("absent(fillmask_ready == 1)")
    assert not is_per_release("fillmask_ready / on (job) fillmask_workers")

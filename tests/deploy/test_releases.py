"""Two releases in one cluster, which share no name, selector, reference, host name or query."""

import re
from typing import Any

import promql_parser
import pytest

from tests.deploy import files, kustomize, monitoring
from tests.deploy.kustomize import Objects

pytestmark = pytest.mark.processes

EXAMPLES = [files.K8S / "examples" / name for name in ("whole-file", "pretraining")]
FIRST = [kustomize.OVERLAYS / "production", files.K8S / "monitoring", *EXAMPLES]
# Fields that name no object of the release: containers, labels, groups of rules, model formats.
SHARED = (
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
)


@pytest.fixture(scope="module", params=["production", "one namespace", "kserve-runtime"])
def both(request: pytest.FixtureRequest) -> tuple[Objects, Objects]:
    """Objects of two releases. The second is the overlay of docs/deploy.md."""
    (overlay,) = (each for each in files.overlays(files.DEPLOY_PAGE) if "nameSuffix" in each)
    directories = FIRST
    if request.param in {"production", "one namespace"}:
        overlay["resources"] += EXAMPLES
    else:
        paths = {path.name: path for path in kustomize.ROOTS}
        directories = [paths[request.param]]
        overlay |= {"resources": directories, "transformers": []}
    if request.param == "one namespace":
        (addition,) = (each for each in files.yaml_blocks(files.DEPLOY_PAGE) if "kind" not in each)
        patches = [*overlay["patches"], *addition["patches"]]
        overlay |= {"namespace": "fillmask", "patches": patches}
    first = [each for path in directories for each in kustomize.rendered(path)]
    return first, kustomize.overlaid(overlay)


def identity(each: dict[str, Any]) -> tuple[str, str, str]:
    """Return the kind, the namespace, which kubectl may set, and the name of an object."""
    metadata = each["metadata"]
    is_wide = each["kind"] in kustomize.CLUSTER_SCOPED
    return each["kind"], "" if is_wide else metadata.get("namespace", "fillmask"), metadata["name"]


def test_no_name_is_the_same(both: tuple[Objects, Objects]) -> None:
    first, second = ({identity(each) for each in objects} for objects in both)
    assert (len(first), len(second)) == (len(both[0]), len(both[1]))
    assert not first & second


def test_nothing_else_has_a_name_of_the_first_release(both: tuple[Objects, Objects]) -> None:
    first, second = both
    names = {each["metadata"]["name"] for each in first}
    names -= {"fillmask"} & {identity(each)[1] for each in second}  # of one namespace
    # `python -m fillmask.cli` names no object
    old_name = re.compile(rf"(?<![\w/-])({'|'.join(map(re.escape, names))})(?![\w-]|\.cli\b)")
    for each in second:
        for path, value in kustomize.strings(each):
            if not path.endswith(SHARED):
                assert not old_name.search(value), (each["kind"], path)


def test_selectors_and_references_stay_in_their_release(both: tuple[Objects, Objects]) -> None:
    for objects, others in (both, both[::-1]):
        own_pods, other_pods = (kustomize.labels_of_pods(each) for each in (objects, others))
        for selector in kustomize.selectors(objects):
            assert any(selector.items() <= labels.items() for labels in own_pods)
            assert not any(selector.items() <= labels.items() for labels in other_pods)
    first, second = (kustomize.references(objects) for objects in both)
    assert len(first) == len(second)
    assert not first & second
    addresses = re.compile(r"listeners\.(hostname|tls\.certificateRefs\.name)$")
    first, second = (
        {
            found
            for each in objects
            for found in kustomize.strings(each)
            if addresses.search(found[0])
        }
        for objects in both
    )
    assert len(first) == len(second)
    assert not first & second


def own_labels(objects: Objects) -> dict[str, str]:
    """Return the labels that Prometheus adds to the metrics of a release."""
    services = (each["metadata"] for each in objects if each["kind"] == "Service")
    label = "app.kubernetes.io/name"
    (service,) = (each for each in services if each["labels"][label] == "fillmask")
    return {"namespace": service["namespace"], "job": service["name"]}


def test_queries_select_or_separate_releases(both: tuple[Objects, Objects]) -> None:
    for objects in both:
        queries = [rule["expr"] for rule in monitoring.rules(objects)]
        scalers = [each["spec"] for each in objects if each["kind"] == "ScaledObject"]
        triggers = [trigger["metadata"] for spec in scalers for trigger in spec["triggers"]]
        for query in (*queries, *(each["query"] for each in triggers if "query" in each)):
            promql_parser.parse(query)
            matchers = dict(re.findall(r'\b(namespace|job)="([^"]*)"', query))
            assert matchers in ({}, own_labels(objects)), query
            # without them, every aggregation and match keeps both labels
            kept = re.findall(r"\b(?:sum|min|max|avg|count|absent)\b(?: by \(([^)]*)\))?", query)
            kept += re.findall(r"\bon \(([^)]*)\)", query)
            is_kept = all({"namespace", "job"} <= set(each.split(", ")) for each in kept)
            assert matchers or is_kept, query


def check_alert(objects: Objects) -> dict[str, str]:
    """Check that the alert of a release names it, and return the alert's labels."""
    rules = {rule["alert"]: rule for rule in monitoring.rules(objects)}
    rule, own = rules["FillmaskUnavailable"], own_labels(objects)
    assert dict(re.findall(r'(\w+)="([^"]*)"', rule["expr"])) == own
    assert rule["labels"].items() >= own.items()
    assert re.findall(r'"([^"]*)"', rule["annotations"]["summary"]) == list(own.values())
    page = monitoring.runbook_page(objects)
    assert {each["annotations"]["runbook_url"].partition("#")[0] for each in rules.values()} == {
        page
    }
    labels: dict[str, str] = rule["labels"]
    return labels


def test_alerts_name_their_release_and_the_page_of_its_overlay(
    both: tuple[Objects, Objects],
) -> None:
    if monitoring.rules(both[0]):
        first, second = map(check_alert, both)
        # Alertmanager merges alerts with identical labels.
        assert first != second


def test_overlay_of_the_page_about_operations_names_its_release() -> None:
    (overlay,) = files.overlays(files.OPERATIONS_PAGE)
    objects = kustomize.overlaid(overlay)
    assert own_labels(objects) == {"namespace": "my-namespace", "job": "fillmask"}
    check_alert(objects)
    placeholder = monitoring.runbook_page(kustomize.rendered(monitoring.MONITORING))
    assert monitoring.runbook_page(objects) != placeholder

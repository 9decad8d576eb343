"""Alert FillmaskUnavailable of each release: its query, its labels and its summary."""

import re

import pytest

from tests.deploy import files, kustomize, releases
from tests.deploy.kustomize import Objects
from tests.deploy.releases import Releases


@pytest.fixture(scope="module", params=["two namespaces", "one namespace"])
def both(request: pytest.FixtureRequest) -> Releases:
    return releases.of_production(in_one_namespace=request.param == "one namespace")


def check_alert(objects: Objects) -> None:
    """Check that the query, the labels and the summary name the release of the objects."""
    rule, own = releases.alert_of(objects), releases.own_labels(objects)
    assert dict(re.findall(r'(\w+)="([^"]*)"', rule["expr"])) == own
    assert rule["labels"].items() >= own.items()
    assert re.findall(r'"([^"]*)"', rule["annotations"]["summary"]) == list(own.values())


def test_alert_names_the_release(both: Releases) -> None:
    for objects in both:
        check_alert(objects)
    # Alertmanager merges alerts with identical labels.
    first, second = (releases.alert_of(objects)["labels"] for objects in both)
    assert first != second


def test_alert_names_a_first_release_in_another_namespace() -> None:
    (overlay,) = files.yaml_blocks(files.OPERATIONS_PAGE)
    objects = kustomize.render_overlay(releases.with_absolute_paths(overlay))
    assert releases.own_labels(objects) == {"namespace": "my-namespace", "job": "fillmask"}
    check_alert(objects)

"""Alerts of each release: the query, labels and summary of one, and the page that all link."""

import re

import pytest

from tests.deploy import files, kustomize, monitoring, releases
from tests.deploy.kustomize import Objects
from tests.deploy.releases import Releases

pytestmark = pytest.mark.processes


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


def overlay_with_monitoring() -> Objects:
    """Return the objects of the overlay of docs/operations.md."""
    (overlay,) = files.yaml_blocks(files.OPERATIONS_PAGE)
    return kustomize.overlaid(files.with_absolute_paths(overlay))


def test_alert_names_a_first_release_in_another_namespace() -> None:
    objects = overlay_with_monitoring()
    assert releases.own_labels(objects) == {"namespace": "my-namespace", "job": "fillmask"}
    check_alert(objects)


def test_every_alert_links_the_page_of_its_overlay() -> None:
    second = releases.of_production().second
    placeholder = monitoring.runbook_page(kustomize.rendered(monitoring.MONITORING))
    for objects, alerts in ((overlay_with_monitoring(), len(monitoring.alerts())), (second, 1)):
        page = monitoring.runbook_page(objects)
        assert page != placeholder
        urls = [rule["annotations"]["runbook_url"] for rule in monitoring.rules(objects)]
        assert [url.partition("#")[0] for url in urls] == [page] * alerts

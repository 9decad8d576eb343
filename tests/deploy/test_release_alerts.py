"""Alert FillmaskUnavailable of each release: its query, its labels and its summary."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def cases(both: Releases) -> list[dict[str, Any]]:
    """Return the cases of promtool in which both releases are missing or only the second is."""
    expected = [
        {
            "exp_labels": {"severity": "critical", **releases.own_labels(objects)},
            "exp_annotations": releases.alert_of(objects)["annotations"],
        }
        for objects in both
    ]
    labels = ",".join(
        f'{name}="{value}"' for name, value in releases.own_labels(both.first).items()
    )
    ready = {"series": f"fillmask_ready{{{labels}}}", "values": "1+0x10"}
    check = {"eval_time": "5m", "alertname": releases.UNAVAILABLE}
    return [
        {
            "interval": "1m",
            "input_series": series,
            "alert_rule_test": [check | {"exp_alerts": alerts}],
        }
        for series, alerts in (([], expected), ([ready], expected[1:]))
    ]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_each_missing_release_fires_its_own_alert(both: Releases, tmp_path: Path) -> None:
    rules = [each for each in (*both.first, *both.second) if each["kind"] == "PrometheusRule"]
    names = [f"{number}.yml" for number in range(len(rules))]
    for name, each in zip(names, rules, strict=True):
        (tmp_path / name).write_text(yaml.safe_dump(each["spec"]))
    test = {"rule_files": names, "evaluation_interval": "1m", "tests": cases(both)}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

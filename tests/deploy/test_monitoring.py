"""PromQL of the dashboard and the alerts, with their use in compose.yaml and in clusters."""

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from fillmask.engine.admission import Admission
from tests.deploy import files, monitoring

SERVICES = files.read_yaml(files.COMPOSE)["services"]
ALERTS = pytest.mark.parametrize("alert", monitoring.alerts(), ids=lambda rule: rule["alert"])


@pytest.fixture(scope="module")
def families() -> dict[str, str]:
    return monitoring.exposed_families()


def test_dashboard_and_alerts_query_existing_metrics(families: dict[str, str]) -> None:
    expressions = [*monitoring.dashboard_expressions()]
    assert len(expressions) > 30
    expressions += [alert["expr"] for alert in monitoring.alerts()]
    for expression in expressions:
        metrics = monitoring.metrics_of(expression)
        assert metrics
        unknown = {monitoring.family(metric, families) for metric in metrics} - families.keys()
        assert not unknown, expression


def test_queries_name_existing_lanes() -> None:
    lanes = set(Admission(1, 1, 1, 1, 1).load.waiting_tokens)
    scaling = (files.K8S / "overlays" / "production" / "scaledobject.yaml").read_text()
    expressions = [*monitoring.dashboard_expressions(), scaling]
    expressions += [alert["expr"] for alert in monitoring.alerts()]
    named = {lane for one in expressions for lane in re.findall(r'lane="(\w+)"', one)}
    assert named
    assert named <= lanes


def test_check_of_metrics_can_fail(families: dict[str, str]) -> None:
    [metric] = monitoring.metrics_of("rate(fillmask_request_seconds_bukcet[$__rate_interval])")
    assert monitoring.family(metric, families) not in families
    with pytest.raises(ValueError, match="unclosed"):
        monitoring.metrics_of("sum(fillmask_ready")


def test_every_own_metric_is_shown_in_a_panel(families: dict[str, str]) -> None:
    shown = {
        metric
        for expression in monitoring.dashboard_expressions()
        for metric in monitoring.metrics_of(expression)
    }
    own = {name for name in families if name.startswith("fillmask_")}
    assert own - {monitoring.family(metric, families) for metric in shown} == set()


@ALERTS
def test_alert_has_severity_duration_summary_and_runbook(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert re.fullmatch(r"\d+m", alert["for"])
    assert alert["annotations"]["summary"].endswith(".")
    page, _, section = alert["annotations"]["runbook_url"].partition("#")
    assert section == alert["alert"].lower()
    of_release = files.read_yaml(monitoring.MONITORING / "release" / "prometheus-rule.yml")
    assert page == monitoring.runbook_page([of_release])


def test_operator_gets_the_same_rules() -> None:
    # A release that is missing has no metrics, so its alert names the release.
    (group,) = files.read_yaml(monitoring.MONITORING / "alerts.yml")["groups"]
    unavailable, *others = group["rules"]
    of_cluster, of_release = (
        files.read_yaml(monitoring.MONITORING / name)
        for name in ("prometheus-rule.yml", "release/prometheus-rule.yml")
    )
    assert {of_cluster["kind"], of_release["kind"]} == {"PrometheusRule"}
    assert of_cluster["spec"] == {"groups": [group | {"rules": others}]}
    (alert,) = monitoring.rules([of_release])
    summary = 'In the namespace "fillmask", no instance of "fillmask" is ready.'
    expression = 'absent(fillmask_ready{namespace="fillmask",job="fillmask"} == 1)'
    assert unavailable["expr"] == "absent(fillmask_ready == 1)"
    assert alert == unavailable | {
        "expr": expression,
        "labels": unavailable["labels"] | {"namespace": "fillmask", "job": "fillmask"},
        "annotations": unavailable["annotations"] | {"summary": summary},
    }


def test_every_alert_has_a_case_for_promtool() -> None:
    cases = files.read_yaml(monitoring.MONITORING / "alerts-test.yml")["tests"]
    (wrong,) = (case for case in cases if case["name"] == "every problem at once")
    expected = re.findall(r'alertname="(\w+)"', str(wrong["promql_expr_test"]))
    assert sorted(expected) == sorted(alert["alert"] for alert in monitoring.alerts())


def test_panels_do_not_overlap() -> None:
    # Grafana's grid has 24 columns.
    taken = set()
    panels = monitoring.dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for column in range(place["x"], place["x"] + place["w"]):
            for line in range(place["y"], place["y"] + place["h"]):
                assert (column, line) not in taken, panel["title"]
                taken.add((column, line))


def test_prometheus_of_compose_scrapes_the_service_with_the_mounted_rules() -> None:
    config = files.read_yaml(monitoring.MONITORING / "prometheus.yml")
    addresses = [
        address
        for job in config["scrape_configs"]
        for each in job["static_configs"]
        for address in each["targets"]
    ]
    assert f"fillmask:{files.image_settings().port}" in addresses
    assert {address.partition(":")[0] for address in addresses} <= {*SERVICES, "localhost"}
    mounted = [volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]]
    assert {f"/etc/prometheus/{name}" for name in config["rule_files"]} <= {*mounted}


def test_grafana_of_compose_finds_the_dashboard_and_prometheus() -> None:
    grafana = SERVICES["grafana"]
    mounted = [volume.split(":")[1] for volume in grafana["volumes"]]
    providers = files.read_yaml(monitoring.MONITORING / "grafana" / "dashboards.yml")["providers"]
    (path,) = {provider["options"]["path"] for provider in providers}
    home = f"{path}/{monitoring.DASHBOARD.name}"
    assert home in mounted
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == home
    (source,) = files.read_yaml(monitoring.MONITORING / "grafana" / "datasources.yml")[
        "datasources"
    ]
    address = urlsplit(source["url"])
    assert address.hostname in SERVICES
    published = [port.rpartition(":")[2] for port in SERVICES[address.hostname]["ports"]]
    assert str(address.port) in published

"""Dashboard and alerts ask for what there is, and compose provides them."""

import re
from typing import Any

import pytest

from tests.deploy import files, monitoring

SERVICES = files.read_yaml(files.COMPOSE)["services"]
WATCHERS = ["prometheus", "grafana"]
ALERTS = pytest.mark.parametrize("alert", monitoring.alerts(), ids=lambda rule: rule["alert"])
FILES = sorted(path for path in monitoring.MONITORING.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def families() -> dict[str, str]:
    """Every metric, and its type."""
    return monitoring.exposed_families()


def test_the_service_is_asked_for_metrics_that_it_has(families: dict[str, str]) -> None:
    """By the dashboard and by the alerts, which so are PromQL as well."""
    expressions = [*monitoring.dashboard_expressions()]
    assert len(expressions) > 30
    expressions += [alert["expr"] for alert in monitoring.alerts()]
    for expression in expressions:
        metrics = monitoring.metrics_of(expression)
        assert metrics
        unknown = {monitoring.family(metric, families) for metric in metrics} - families.keys()
        assert not unknown, expression


def test_a_wrong_name_or_expression_would_be_found(families: dict[str, str]) -> None:
    """The check above can fail."""
    [metric] = monitoring.metrics_of("rate(fillmask_request_seconds_bukcet[$__rate_interval])")
    assert monitoring.family(metric, families) not in families
    with pytest.raises(ValueError, match="unclosed"):
        monitoring.metrics_of("sum(fillmask_ready")


def test_all_that_the_service_counts_is_shown(families: dict[str, str]) -> None:
    """Every metric of our own is shown in some panel."""
    shown = {
        metric
        for expression in monitoring.dashboard_expressions()
        for metric in monitoring.metrics_of(expression)
    }
    own = {name for name in families if name.startswith("fillmask_")}
    assert own - {monitoring.family(metric, families) for metric in shown} == set()


@ALERTS
def test_an_alert_says_all_that_it_must(alert: dict[str, Any]) -> None:
    """How bad it is, for how long, what it is, and where to read on."""
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert re.fullmatch(r"\d+m", alert["for"])
    assert alert["annotations"]["summary"].endswith(".")
    assert alert["annotations"]["runbook"] == f"docs/operations.md#{alert['alert'].lower()}"


def test_the_operator_is_given_the_same_rules() -> None:
    """One list, in two wrappings."""
    rules = files.read_yaml(monitoring.MONITORING / "prometheus-rule.yml")
    assert rules["kind"] == "PrometheusRule"
    assert rules["spec"] == files.read_yaml(monitoring.MONITORING / "alerts.yml")


def test_every_alert_is_played() -> None:
    """By promtool: it fires in a case where all is wrong."""
    cases = files.read_yaml(monitoring.MONITORING / "alerts-test.yml")["tests"]
    (wrong,) = (case for case in cases if case["name"] == "all is wrong")
    expected = re.findall(r'alertname="(\w+)"', str(wrong["promql_expr_test"]))
    assert sorted(expected) == sorted(alert["alert"] for alert in monitoring.alerts())


def test_panels_do_not_lie_on_each_other() -> None:
    """Each has its place on the grid of 24 columns, and its own number."""
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


def test_kustomization_takes_what_clusters_need() -> None:
    """The rules and the dashboard, under paths that exist."""
    kustomization = files.read_yaml(monitoring.MONITORING / "kustomization.yaml")
    [generated] = kustomization["configMapGenerator"]
    for path in (*kustomization["resources"], *generated["files"]):
        assert (monitoring.MONITORING / path).is_file()
    assert generated["options"]["labels"] == {"grafana_dashboard": "1"}


def test_prometheus_of_compose_scrapes_the_service() -> None:
    """By its name and port in the network of compose, with the rules that are mounted."""
    config = files.read_yaml(monitoring.MONITORING / "prometheus.yml")
    targets = {job["job_name"]: job["static_configs"] for job in config["scrape_configs"]}
    assert targets["fillmask"] == [{"targets": [f"fillmask:{files.DEFAULT_PORT}"]}]
    assert config["rule_files"] == ["alerts.yml"]


def test_compose_mounts_what_exists_where_it_is_looked_for() -> None:
    """For reading; beside the rules and the dashboard there is only what they keep."""
    mounted = {}
    for name in WATCHERS:
        for volume in SERVICES[name]["volumes"]:
            source, target, *mode = volume.split(":")
            if source.startswith("./"):
                assert mode == ["ro"]
                assert (files.ROOT / source).is_file()
                mounted[target] = source
    assert mounted["/etc/prometheus/alerts.yml"] == "./k8s/monitoring/alerts.yml"
    providers = files.read_yaml(monitoring.MONITORING / "grafana" / "dashboards.yml")["providers"]
    [path] = {provider["options"]["path"] for provider in providers}
    assert mounted[f"{path}/fillmask.json"] == "./k8s/monitoring/grafana/fillmask.json"
    [source] = files.read_yaml(monitoring.MONITORING / "grafana" / "datasources.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{path}/fillmask.json"


@pytest.mark.parametrize("name", WATCHERS)
def test_watchers_start_only_when_asked_for_and_have_few_rights(name: str) -> None:
    """A version that is pinned, this machine only, no writes beside their data."""
    watcher = SERVICES[name]
    assert watcher["profiles"] == ["monitoring"]
    assert re.search(r":v?\d+\.\d+\.\d+$", watcher["image"])
    assert all(port.startswith("127.0.0.1:") for port in watcher["ports"])
    assert watcher["read_only"] is True
    assert watcher["cap_drop"] == ["ALL"]
    assert watcher["security_opt"] == ["no-new-privileges:true"]
    assert watcher["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_variables_that_are_named_exist(path: Any) -> None:
    """No file tells a reader to set what stops the start."""
    assert set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", path.read_text())) <= files.VARIABLES

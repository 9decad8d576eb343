"""PromQL of the dashboard, the alerts and the scaler.

`promtool test rules k8s/monitoring/alerts-test.yml` replays the alerts.
"""

import re
from typing import Any

import pytest

from fillmask.engine.admission import Admission
from fillmask.settings import Settings
from tests.deploy import files, monitoring

SCALER = files.read_yaml(files.K8S / "overlays" / "production" / "scaledobject.yaml")["spec"]
(WAITING,) = (each["metadata"] for each in SCALER["triggers"] if each["type"] == "prometheus")
ALERTS = monitoring.alerts()


@pytest.fixture(scope="module")
def families() -> dict[str, str]:
    return monitoring.exposed_families()


def test_queries_name_existing_metrics_and_lanes(families: dict[str, str]) -> None:
    expressions = [*monitoring.dashboard_expressions(), *(alert["expr"] for alert in ALERTS)]
    expressions.append(WAITING["query"])
    assert len(expressions) > 30
    for expression in expressions:
        unknown = monitoring.families_of(expression, families) - families.keys()
        assert not unknown, expression
    lanes = {lane for each in expressions for lane in re.findall(r'lane="(\w+)"', each)}
    assert lanes
    assert lanes <= set(Admission(1, 1, 1, 1, 1).load.waiting_tokens)


def test_every_own_metric_is_shown_in_a_panel(families: dict[str, str]) -> None:
    shown = [monitoring.families_of(each, families) for each in monitoring.dashboard_expressions()]
    own = {name for name in families if name.startswith("fillmask_")}
    assert own - set().union(*shown) == set()


def test_queue_that_scales_is_short_of_the_one_that_rejects() -> None:
    most: int = Settings.model_fields["max_waiting_tokens"].default
    assert float(WAITING["threshold"]) < most / 4


@pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: rule["alert"])
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
    assert of_cluster["spec"] == {"groups": [group | {"rules": others}]}
    (alert,) = monitoring.rules([of_release])
    assert unavailable["expr"] == "absent(fillmask_ready == 1)"
    assert alert["expr"] == 'absent(fillmask_ready{namespace="fillmask",job="fillmask"} == 1)'
    assert (alert["alert"], alert["for"]) == (unavailable["alert"], unavailable["for"])


def test_every_alert_has_a_case_for_promtool() -> None:
    cases = files.read_yaml(monitoring.MONITORING / "alerts-test.yml")["tests"]
    (wrong,) = (case for case in cases if case["name"] == "every problem at once")
    expected = re.findall(r'alertname="(\w+)"', str(wrong["promql_expr_test"]))
    assert sorted(expected) == sorted(alert["alert"] for alert in ALERTS)

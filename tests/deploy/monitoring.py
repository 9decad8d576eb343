"""Monitoring files and the metrics in their expressions."""

import json
import re
from typing import Any

import promql_parser
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.deploy import files

MONITORING = files.K8S / "monitoring"
DASHBOARD = MONITORING / "grafana" / "fillmask.json"


def alerts() -> list[dict[str, Any]]:
    """Return the alert rules of all groups."""
    groups = files.read_yaml(MONITORING / "alerts.yml")["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rules(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules of all PrometheusRules."""
    found = [each["spec"]["groups"] for each in objects if each["kind"] == "PrometheusRule"]
    return [rule for groups in found for group in groups for rule in group["rules"]]


def runbook_page(objects: list[dict[str, Any]]) -> str:
    """Return the page that the alerts of a release should link."""
    annotations = (each["metadata"].get("annotations", {}) for each in objects)
    (page,) = (each["runbooks"] for each in annotations if "runbooks" in each)
    return str(page)


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def dashboard_expressions() -> list[str]:
    """Return the expressions of the panels and of the variables."""
    found = [
        target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])
    ]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            query = variable["query"]["query"]
            found.append(query.removeprefix("label_values(").rpartition(", ")[0])
    return found


def metrics_of(expression: str) -> set[str]:
    """Return the names of the metrics in a PromQL expression.

    Raises:
        ValueError: the expression is not valid.
    """
    found = set()

    def note(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name is not None
            found.add(node.name)

    # Grafana's variable, with an example value
    promql_parser.walk(promql_parser.parse(expression.replace("$__rate_interval", "1m")), note)
    return found


def exposition() -> str:
    """Return the text of /metrics after a fill."""
    with TestClient(create_app(Settings(threads=1))) as client:
        client.post("/fill-mask", json={"inputs": "[MASK]"})
        return client.get("/metrics").text


def exposed_families() -> dict[str, str]:
    """Return the type of every metric family by name."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", exposition(), re.MULTILINE))


def families_of(expression: str, families: dict[str, str]) -> set[str]:
    """Return the metric families of an expression: a `_count` belongs to its histogram."""
    found = set()
    for metric in metrics_of(expression):
        base = re.sub("_(bucket|sum|count)$", "", metric)
        found.add(base if families.get(base) == "histogram" else metric)
    return found

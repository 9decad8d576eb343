"""Monitoring files and the metrics in their expressions."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.deploy import files

MONITORING = files.K8S / "monitoring"
DASHBOARD = MONITORING / "grafana" / "fillmask.json"
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
# Grafana's variables, with example values
VARIABLES = {"$__rate_interval": "1m"}


def alerts() -> list[dict[str, Any]]:
    """Return the alert rules of all groups."""
    groups = files.read_yaml(MONITORING / "alerts.yml")["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rules(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules of all PrometheusRules."""
    return [
        rule
        for each in objects
        if each["kind"] == "PrometheusRule"
        for group in each["spec"]["groups"]
        for rule in group["rules"]
    ]


def runbook_page(objects: list[dict[str, Any]]) -> str:
    """Return the page that the alerts of a release should link."""
    annotations = (each["metadata"].get("annotations", {}) for each in objects)
    (page,) = (each["runbooks"] for each in annotations if "runbooks" in each)
    return str(page)


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def dashboard_expressions() -> Iterator[str]:
    """Yield the expressions of the panels and of the variables."""
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"].removeprefix("label_values(").rpartition(", ")[0]


def metrics_of(expression: str) -> set[str]:
    """Return the names of the metrics in a PromQL expression.

    Raises:
        ValueError: the expression is not valid.
    """
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    found = set()

    def note(node: object) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name is not None
            found.add(node.name)

    promql_parser.walk(promql_parser.parse(expression), note)
    return found


def exposition() -> str:
    """Return the text of /metrics after a fill."""
    with TestClient(create_app(Settings(threads=1))) as client:
        client.post("/fill-mask", json={"inputs": "[MASK]"})
        return client.get("/metrics").text


def exposed_families() -> dict[str, str]:
    """Return the type of every metric family by name."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", exposition(), re.MULTILINE))


def family(metric: str, families: dict[str, str]) -> str:
    """Return the metric family of a sample, e.g. the histogram that a `_count` belongs to."""
    for suffix in HISTOGRAM_SUFFIXES:
        base = metric.removesuffix(suffix)
        if base != metric and families.get(base) == "histogram":
            return base
    return metric

"""Metrics, alerts, log fields, spans and the memory budget of docs/operations.md."""

from __future__ import annotations

import re

import pytest

from fillmask.api.task_call import MAX_RESPONSE_BYTES
from fillmask.app import BUDGET_BYTES, FREE_BYTES
from fillmask.observability.logs import FIELDS
from fillmask.observability.metrics import REJECTED_BY_QUEUE, REJECTED_BY_STATUS
from fillmask.strict_json import MAX_VALUES
from fillmask.tasks.fill_mask.pipeline import CACHED_TARGETS_BYTES
from fillmask.tasks.fill_mask.targets import MAX_TARGETS_BYTES
from fillmask.tokenization.unigram import CACHED_WORDS_BYTES
from tests.deploy import monitoring
from tests.docs import pages

PATH = pages.DOCS / "operations.md"
PAGE = pages.read(PATH)
POD_MIB = 512
MIB = 2**20
# fields of every line of the log, or of lines about a request
LOG_FIELDS = {"timestamp", "level", "logger", "message", "exception", "request_id", "trace_id"}


def named(title: str) -> set[str]:
    """Return the names in the first column of a section's tables."""
    first_cells = re.findall(r"^\| (`[^|]*) \|", pages.section(PAGE, title), re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_metric_of_a_scrape_is_named_and_no_other() -> None:
    reasons = {*REJECTED_BY_STATUS.values(), *REJECTED_BY_QUEUE}
    assert named("Metrics") - {"reason"} == set(monitoring.exposed_families()) | reasons


def test_every_alert_has_a_section_and_no_other() -> None:
    titles = re.findall(r"^### (\w+)$", pages.section(PAGE, "Alerts"), re.MULTILINE)
    assert sorted(titles) == sorted(alert["alert"] for alert in monitoring.alerts())


def test_every_log_field_is_named_and_no_other() -> None:
    assert named("Logs") == LOG_FIELDS | set(FIELDS)


# tests/service/middleware/test_tracing.py finds these names in real traces
@pytest.mark.parametrize("span", ["tokenize", "queue", "compute"])
def test_every_span_is_named(span: str) -> None:
    assert span in named("Traces")


def test_panels_of_the_dashboard_exist() -> None:
    titles = {panel["title"] for panel in monitoring.dashboard()["panels"]}
    panels = set(re.findall(r'panel "([^"]+)"', " ".join(pages.section(PAGE, "Alerts").split())))
    assert len(panels) > 5
    assert panels <= titles


def test_memory_budget_fits_the_pod_and_is_enforced() -> None:
    section = pages.section(PAGE, "Memory")
    rows = re.findall(r"^\| [^|]+ \| (\d+) \|(.*)", section, re.MULTILINE)
    sum_mib = sum(int(mib) for mib, _ in rows)
    assert sum_mib <= POD_MIB
    assert f"{sum_mib} MiB" in section
    enforced = {
        "BUDGET_BYTES": BUDGET_BYTES,
        "FREE_BYTES": FREE_BYTES * 1024,  # of about 1,000 connections
        "CACHED_TARGETS_BYTES": CACHED_TARGETS_BYTES + CACHED_WORDS_BYTES + 2 * MIB,
    }
    for name, size_bytes in enforced.items():
        [mib] = [mib for mib, rest in rows if f"`{name}`" in rest]
        assert int(mib) * MIB == size_bytes, name
    for limit in (f"{MAX_VALUES:,}", f"{MAX_TARGETS_BYTES:,}", f"{MAX_RESPONSE_BYTES // MIB} MiB"):
        assert limit in section

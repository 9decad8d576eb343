"""docs/operations.md says what there is to watch: metrics, alerts, fields of the log, spans."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.app import ANSWERS_BYTES, BODIES_BYTES, FREE_ANSWER_BYTES, FREE_BODY_BYTES
from service.http.json_size import MAX_VALUES
from service.http.unsent_responses import MAX_UNSENT_BYTES
from service.observability.logs import FIELDS
from service.observability.metrics import REFUSED_CONNECTIONS, REFUSED_REQUESTS
from service.settings import ENV_PREFIX, Settings
from service.tasks.plan import CACHED_TARGETS_BYTES
from service.tasks.response_size import MAX_ANSWER_BYTES
from service.tasks.targets import MAX_TARGETS_BYTES
from service.tokenization.unigram import CACHED_WORDS_BYTES
from tests.deploy import monitoring

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
# in every line of the log, or in those about a request
LOG_FIELDS = {"timestamp", "level", "logger", "message", "exception", "request_id", "trace_id"}


def section(title: str) -> str:
    """What is below a heading, up to the next of its level."""
    level = re.search(rf"^(#+) {re.escape(title)}$", PAGE, re.MULTILINE)
    assert level is not None
    return re.split(
        rf"^#{{1,{len(level[1])}}} ", PAGE[level.end() :], maxsplit=1, flags=re.MULTILINE
    )[0]


def named(text: str) -> list[str]:
    """What the first column of its tables names."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_table_of_metrics_is_the_answer() -> None:
    """Every metric of a real scrape has its line, and no line is left over."""
    metrics = [name for name in named(section("Metrics")) if "_" in name]
    reasons = {"deadline", *REFUSED_CONNECTIONS, *REFUSED_REQUESTS}
    assert sorted(set(metrics) - reasons) == sorted(monitoring.exposed_families())


def test_the_table_of_reasons_is_whole() -> None:
    """Why something may be refused."""
    reasons = section("Metrics").split("| `reason` |")[1]
    assert sorted(named(reasons)) == sorted(["deadline", *REFUSED_CONNECTIONS, *REFUSED_REQUESTS])


def test_every_alert_has_its_section() -> None:
    """And every section its alert, in the order of the rules."""
    titles = re.findall(r"^### (\w+)$", section("Alerts"), re.MULTILINE)
    assert titles == [alert["alert"] for alert in monitoring.alerts()]
    for title in titles:
        assert section(title).count("\n- ") >= 2, title
        assert "- Confirm: " in section(title)


def test_the_fields_of_the_log_are_told() -> None:
    """All that a line may have."""
    assert sorted(named(section("Logs"))) == sorted(LOG_FIELDS | set(FIELDS))


def test_the_dashboards_panels_exist() -> None:
    """What a section tells to look at, by its title."""
    titles = {panel["title"] for panel in monitoring.dashboard()["panels"]}
    looked_at = set(re.findall(r'"([A-Z][^"]+)"', section("Alerts")))
    sentences = {"The model has not answered", "The service is shutting down"}
    assert len(looked_at & titles) > 5
    assert looked_at <= titles | sentences


def test_settings_and_links_exist() -> None:
    """No variable that stops the start, and no link to nowhere."""
    variables = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"FILLMASK_[A-Z_]*[A-Z]", PAGE)) <= variables
    anchors = {title.lower() for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
    for path in re.findall(r"`(k8s/[^`]+)`", PAGE):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("span", ["tokenize", "queue", "compute"])
def test_spans_are_told(span: str) -> None:
    """By the names that tests/service/observability/test_opentelemetry.py finds in real traces."""
    assert span in named(section("Traces"))


def test_the_memory_budget_fits_the_pod() -> None:
    """Its sum is that of its terms, and those are what is enforced."""
    text = section("Memory")
    terms = {
        name: int(mib) for name, mib in re.findall(r"^\| (.+?) \| (\d+) \|", text, re.MULTILINE)
    }
    assert sum(terms.values()) <= 512
    assert f"The sum is {sum(terms.values())} MiB." in text
    mib = 2**20
    connections = Settings().max_connections
    enforced = {
        "bodies, and the texts read in them": BODIES_BYTES,
        "answers: passes, scores of targets, fills, JSON": ANSWERS_BYTES,
        "answers that clients do not read": MAX_UNSENT_BYTES,
        "the first 16 KiB of each body": FREE_BODY_BYTES * connections,
        "the first 32 KiB of each answer": FREE_ANSWER_BYTES * connections,
        "caches of targets and words": CACHED_TARGETS_BYTES + CACHED_WORDS_BYTES + 2 * mib,
    }
    assert {name: terms[name] * mib for name in enforced} == enforced
    assert f"{MAX_VALUES:,} JSON values, {MAX_TARGETS_BYTES:,} bytes of targets" in text
    assert f"an answer of {MAX_ANSWER_BYTES // mib} MiB" in text

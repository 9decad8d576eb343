"""Traces in an in-memory exporter and in a real collector."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from fillmask.middleware import tracing
from fillmask.settings import read_settings
from tests.service.conftest import StartServer
from tests.service.server_process import run_process
from tests.service.serving import serving
from tests.service.tiny import Tiny

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
WRITTEN = "what the user wrote"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Exporter that keeps the service's spans in memory."""
    kept = InMemorySpanExporter()
    monkeypatch.setattr(tracing, "OTLPSpanExporter", lambda: kept)
    return kept


def spans_of(
    tiny: Tiny, exporter: InMemorySpanExporter, *requests: tuple[str, str, object]
) -> list[ReadableSpan]:
    """Return all spans of a service after these requests, in the order of their start."""
    with serving(tiny.path, traces="on") as client:
        for method, path, body in requests:
            client.request(method, path, json=body, headers=TRACED)
    found = exporter.get_finished_spans()
    # work without a request, such as golden prompts at the start, has no trace
    assert all(span.parent is not None for span in found)
    return sorted(found, key=lambda span: span.start_time or 0)


def test_request_and_child_spans(tiny: Tiny, exporter: InMemorySpanExporter) -> None:
    # A server span continues the client's trace and has child spans in order.
    body = {"inputs": ["the [MASK]", "a [MASK]"]}
    server, *parts = spans_of(tiny, exporter, ("POST", "/fill-mask", body))
    assert server.name == "POST /fill-mask"
    assert server.kind is SpanKind.SERVER
    assert server.parent is not None
    assert format_span_id(server.parent.span_id) == PARENT
    assert server.attributes == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "http.response.status_code": 200,
        "http.route": "/fill-mask",
        "fillmask.model": "tiny",
    }
    assert [part.name for part in parts][:3] == ["tokenize", "queue", "compute"]
    own = server.get_span_context()
    assert own is not None
    for part in parts:
        assert part.parent is not None
        assert part.parent.span_id == own.span_id
        assert format_trace_id(part.parent.trace_id) == TRACE
        assert part.start_time is not None
        assert part.end_time is not None
        assert server.start_time is not None
        assert server.end_time is not None
        assert server.start_time - 1e6 <= part.start_time <= part.end_time
        assert part.end_time <= server.end_time + 1e6
    computed = [part.attributes or {} for part in parts if part.name == "compute"]
    assert sum(int(str(each["fillmask.batch.tokens"])) for each in computed) == 8
    assert sum(int(str(each["fillmask.batch.sequences"])) for each in computed) == 2


def test_spans_have_no_text_of_clients(tiny: Tiny, exporter: InMemorySpanExporter) -> None:
    # Spans contain no texts, paths or queries, whichever part of a request fails.
    found = spans_of(
        tiny,
        exporter,
        ("POST", f"/fill-mask?q={WRITTEN}", {"inputs": f"{WRITTEN} [MASK]"}),
        ("POST", "/fill-mask", {"inputs": WRITTEN}),
        ("GET", f"/{WRITTEN}", None),
        ("POST", f"/models/{WRITTEN}", {"inputs": "[MASK]"}),
    )
    told = " ".join(span.to_json() for span in found)
    assert WRITTEN not in told
    assert WRITTEN.replace(" ", "%20") not in told
    statuses = [
        (span.attributes or {}).get("http.response.status_code")
        for span in found
        if span.kind is SpanKind.SERVER
    ]
    assert statuses == [200, 422, 404, 404]


def test_only_server_errors_mark_the_span(
    tiny: Tiny, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An invalid request is not an error of the service.
    def fail(*_: object) -> None:
        raise RuntimeError(WRITTEN)

    monkeypatch.setattr("fillmask.tasks.task.Task.response", fail)
    failed, wrong = (
        span
        for span in spans_of(
            tiny,
            exporter,
            ("POST", "/fill-mask", {"inputs": "[MASK]"}),
            ("POST", "/fill-mask", {"inputs": 7}),
        )
        if span.kind is SpanKind.SERVER
    )
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "500"
    assert WRITTEN not in failed.to_json()
    assert wrong.status.status_code is StatusCode.UNSET


def test_probes_are_not_traced(tiny: Tiny, exporter: InMemorySpanExporter) -> None:
    # Neither health probes nor requests for /metrics have spans.
    paths = ("/health/live", "/health/ready", "/v2/health/ready", "/metrics")
    assert spans_of(tiny, exporter, *(("GET", path, None) for path in paths)) == []


class Collector:
    """Collector of OTLP over HTTP.

    Attributes:
        received: export requests, in order of arrival.
    """

    def __init__(self) -> None:
        received = self.received = list[ExportTraceServiceRequest]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") is None and self.path == "/v1/traces":
                    received.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Running collector."""
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()


@pytest.mark.processes
def test_otel_variables_enable_tracing(
    start_server: StartServer, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process sends its last spans before it exits, under the configured service name.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "fills-of-ours")
    with start_server("--access-log=all", "--drain-delay-s=0") as (process, url):
        answer = httpx.post(f"{url}/fill-mask", json={"inputs": "the [MASK]"}, headers=TRACED)
        assert answer.is_success
        process.terminate()
        assert process.wait(20) == 0
    [request] = collector.received
    [of_resource] = request.resource_spans
    attributes = {one.key: one.value.string_value for one in of_resource.resource.attributes}
    assert attributes["service.name"] == "fills-of-ours"
    names = [span.name for scope in of_resource.scope_spans for span in scope.spans]
    assert "POST /fill-mask" in names


@pytest.mark.processes
def test_unreachable_collector_delays_nothing(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Requests get responses, and the process exits with code 0.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    # a process exits with 1 if its end takes longer than the grace period plus 5 s
    with start_server("--drain-delay-s=0", "--shutdown-grace-s=1") as (process, url):
        assert httpx.post(f"{url}/fill-mask", json={"inputs": "the [MASK]"}).is_success
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("value", "flags", "enabled"),
    [
        ("", [], False),
        ("", ["--traces=on"], True),
        ("http://x", [], True),
        ("http://x", ["--traces=off"], False),
    ],
)
def test_setting_overrides_the_variables(
    value: str, flags: list[str], monkeypatch: pytest.MonkeyPatch, *, enabled: bool
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", value)
    assert read_settings(flags).tracing_enabled is enabled


WITHOUT = """
import sys
sys.modules["opentelemetry.sdk"] = None
from fillmask.__main__ import main
sys.exit(main())
"""


@pytest.mark.processes
def test_missing_package_stops_the_start(tiny: Tiny) -> None:
    done = run_process(WITHOUT, f"--bundle={tiny.path}", "--port=0", "--traces=on")
    assert done.returncode == 2
    assert done.stderr == (
        "Tracing needs OpenTelemetry, which is not installed; run pip install '.[otel]' in a "
        "checkout or pip install 'PATH/TO/WHEEL[otel]', or set traces to off.\n"
    )


OFF = """
import json, sys
from pathlib import Path
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from fillmask.app import create_app
from fillmask.settings import Settings
with TestClient(create_app(Settings(bundle=Path(sys.argv[1]), threads=1))) as client:
    for path in ("/fill-mask", "/score"):
        client.post(path + "?q=written", json={"inputs": "the dog"})
name = "fillmask.middleware.tracing"
print(json.dumps([len(exporter.get_finished_spans()), name in sys.modules]))
"""


@pytest.mark.processes
def test_off(tiny: Tiny) -> None:
    # Tracing is off by default.
    # Spans of FastAPI's own instrumentation would contain queries and the messages of exceptions.
    done = run_process(OFF, str(tiny.path))
    assert json.loads(done.stdout) == [0, False]

"""Fields of log lines and exceptions without their messages."""

import json
from typing import Any

import pytest

from tests.service.server_process import run_process

WRITTEN = "what the user wrote"
START = """
import asyncio, gc, logging, sys, threading, warnings
from fillmask.observability.logs import log_loop_error, start_logging
from fillmask.observability.request_context import CURRENT_SCOPE, REQUEST_ID, TRACE_ID
start_logging(sys.argv[1], sys.argv[2])
log = logging.getLogger("fillmask.somewhere")
def fail():
    raise ValueError(sys.argv[3])
"""
pytestmark = pytest.mark.processes


def logged(code: str, style: str = "json") -> str:
    """Return the standard error of a separate process that sets up logging and runs code."""
    done = run_process(START + code, "info", style, WRITTEN)
    assert done.stdout == ""
    assert WRITTEN not in done.stderr
    return done.stderr


def lines(code: str) -> list[dict[str, Any]]:
    """Return the JSON objects of the lines of `logged`."""
    return [json.loads(line) for line in logged(code).splitlines()]


def test_each_line_is_a_json_object() -> None:
    # Escapes replace line breaks in messages.
    [line] = lines("log.warning('one\\ntwo %s', 3)")
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "warning", "logger": "fillmask.somewhere", "message": "one\ntwo 3"}


def test_only_known_fields_are_logged() -> None:
    # Libraries add other fields to their records. Any client can cause messages of uvicorn.
    code = "log.debug('d'); log.info('x', extra={'status': 500, 'unknown': sys.argv[3]})"
    [line] = lines(code + "; logging.getLogger('uvicorn.error').error('u')")
    assert line["status"] == 500
    assert "unknown" not in line


def test_request_and_trace_ids() -> None:
    scope = "CURRENT_SCOPE.set({REQUEST_ID: b'the-id', 'headers': [%s], **%s})\nlog.info('x')"
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    [line] = lines(scope % ("", "{}"))
    assert line["request_id"] == "the-id"
    assert "trace_id" not in line
    [line] = lines(scope % (f"(b'traceparent', b'{parent}')", "{}"))
    assert line["trace_id"] == parent[3:35]
    [line] = lines(scope % (f"(b'traceparent', b'{parent}')", "{TRACE_ID: 'ours'}"))
    assert line["trace_id"] == "ours"


def test_text_format() -> None:
    # The output has colours only on a terminal.
    text = logged("log.warning('careful')", style="text")
    assert "[warning  ] careful" in text
    assert "\x1b" not in text
    assert text.count("\n") == 1


EXCEPTIONS = {
    "a message with one": "try: fail()\nexcept ValueError: log.exception('it failed')",
    "the end of the process": "fail()",
    "the end of a thread": "t = threading.Thread(target=fail); t.start(); t.join()",
    "a finalizer": "class A:\n  def __del__(self): fail()\nA(); gc.collect()",
    "a callback": """
async def main():
    asyncio.get_running_loop().set_exception_handler(log_loop_error)
    asyncio.get_running_loop().call_soon(lambda secret: fail(), sys.argv[3])
    await asyncio.sleep(0.01)
asyncio.run(main())
""",
}


@pytest.mark.parametrize("code", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_exceptions_have_type_and_traceback_only(code: str) -> None:
    # The result is the same for every exception hook and handler.
    [line] = lines(code)
    told = line["message"] + line.get("exception", "")
    assert "ValueError" in told
    assert "in fail" in told
    assert line["level"] in {"error", "critical"}


def test_event_loop_error_without_an_exception() -> None:
    [line] = lines("log_loop_error(None, {'message': 'Task was destroyed but it is pending!'})")
    assert line["message"] == "error in the event loop: Task was destroyed but it is pending!"


def test_warnings_are_logged() -> None:
    [line] = lines("warnings.warn('old', DeprecationWarning)")
    assert line["logger"] == "py.warnings"
    assert "DeprecationWarning: old" in line["message"]

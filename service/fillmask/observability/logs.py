"""Logging as one JSON object per line or as text for a terminal.

Python's logging also handles messages of libraries, warnings and uncaught exceptions. The log
contains text of clients only with the setting log_texts. The log has the type and traceback of an
exception but not its message, which may quote text of a client.
"""

import asyncio
import logging
import sys
import threading
from typing import Any, Literal

from structlog.dev import ConsoleRenderer
from structlog.processors import EventRenamer, JSONRenderer, TimeStamper
from structlog.stdlib import ExtraAdder, ProcessorFormatter, add_log_level, add_logger_name
from structlog.typing import EventDict, Processor

from fillmask.errors import safe_traceback
from fillmask.observability.request_context import CURRENT_SCOPE, REQUEST_ID, TRACE_ID, trace_id

Format = Literal["auto", "json", "text"]

# The log includes only these extra fields, because other fields may contain text of clients.
FIELDS = (
    *("method", "route", "status", "duration_ms", "answer_bytes", "model"),
    *("body", "body_bytes"),
)

_log = logging.getLogger(__name__)


def start_logging(level: str, style: Format) -> None:
    """Send all log messages of this process to standard error.

    Args:
        level: minimum severity of a logged message.
        style: json, text, or auto, which means text for a terminal and json otherwise.
    """
    text = style == "text" or (style == "auto" and sys.stderr.isatty())
    renderer: list[Processor] = [EventRenamer("message"), JSONRenderer()]
    if text:
        renderer = [ConsoleRenderer(colors=sys.stderr.isatty())]
    handler = logging.StreamHandler()
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[
                TimeStamper(fmt="iso", utc=True),
                add_log_level,
                add_logger_name,
                _add_request,
                ExtraAdder(allow=FIELDS),
                _replace_exception_text,
            ],
            processors=[ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Any client can cause uvicorn's messages, such as one per invalid request. The service itself
    # logs its exceptions.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda _type, error, _traceback: _log_uncaught(error, "")
    sys.unraisablehook = lambda args: _log_uncaught(args.exc_value, " in a finalizer")
    threading.excepthook = lambda args: _log_uncaught(args.exc_value, " in a thread")


def log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop without the arguments that asyncio quotes."""
    if (error := context.get("exception")) is None:
        _log.error("error in the event loop: %s", context["message"])
    else:
        _log.error("unhandled exception in the event loop:\n%s", safe_traceback(error))


def _add_request(_logger: Any, _method: str, event: EventDict) -> EventDict:
    scope = CURRENT_SCOPE.get()
    if scope is not None:
        event["request_id"] = scope[REQUEST_ID].decode()
        if found := scope.get(TRACE_ID) or trace_id(scope["headers"]):
            event["trace_id"] = found
    return event


def _replace_exception_text(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event.pop("stack_info", None)
    exc_info = event.pop("exc_info", None)
    if exc_info and exc_info[1] is not None:
        event["exception"] = safe_traceback(exc_info[1])
    return event


def _log_uncaught(error: BaseException | None, where: str) -> None:
    if error is not None:
        _log.critical("uncaught exception%s:\n%s", where, safe_traceback(error))

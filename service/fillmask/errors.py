"""Errors of the service, for clients and for operators."""

import json
import traceback
from typing import ClassVar

MAX_QUOTED_CHARS = 80


class FillMaskError(Exception):
    """Base class of the errors that clients receive.

    Attributes:
        status: HTTP status of the response.
        text: message that tells the client what is wrong and what is allowed.
    """

    status: ClassVar[int] = 500

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class MalformedRequestError(FillMaskError):
    """Error for a body or header with invalid syntax."""

    status = 400


class ContentTypeError(FillMaskError):
    """Error for a content type other than JSON."""

    status = 415


class NotFoundError(FillMaskError):
    """Error for an unknown model or version."""

    status = 404


class InvalidRequestError(FillMaskError, ValueError):
    """Error for invalid parameters or input."""

    status = 422


class OverloadedError(FillMaskError):
    """Error for a request during an overload.

    Attributes:
        retry_after_s: estimated time until the end of the overload, in whole seconds.
    """

    status = 429

    def __init__(self, text: str, retry_after_s: int) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


def overloaded_text(retry_after_s: int) -> str:
    """Return the error message of a 429 response."""
    return f"The service is overloaded; try again in {retry_after_s} s."


class NotReadyError(FillMaskError):
    """Error of a service that is starting, is stopping or has failed."""

    status = 503


class StartupError(Exception):
    """Error that prevents the start or a reload, with a message for the operator."""


class BundleError(StartupError, ValueError):
    """Error for a bundle that is unreadable or invalid."""


class SettingsError(StartupError, ValueError):
    """Error for an unknown setting or an invalid value."""


def quote(text: str) -> str:
    """Return the text in double quotes on one line, with at most MAX_QUOTED_CHARS characters."""
    quoted = json.dumps(text[:MAX_QUOTED_CHARS], ensure_ascii=False)
    if len(quoted) <= MAX_QUOTED_CHARS:
        return quoted
    return quoted[: MAX_QUOTED_CHARS - 2] + '…"'


def safe_traceback(error: BaseException) -> str:
    """Return the tracebacks and types of an error and its causes, without their messages.

    An exception message may quote user input, which must not enter a log.
    """
    lines = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [*traceback.format_tb(cause.__traceback__), f"{type(cause).__name__}\n"]
        cause = cause.__cause__
    return "".join(lines).rstrip()

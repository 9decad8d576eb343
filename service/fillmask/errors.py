"""Errors of the service, for clients and for operators."""

import json
import traceback
from typing import ClassVar

MAX_QUOTED_CHARS = 80
SHUTTING_DOWN = "The service is shutting down; wait until it is ready again."


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
    status = 400


class ContentTypeError(FillMaskError):
    """Error for a content type other than JSON."""

    status = 415


class UnauthorizedError(FillMaskError):
    status = 401


class TooLargeError(FillMaskError):
    status = 413


class SlowRequestError(FillMaskError):
    status = 408


class DeadlineError(FillMaskError):
    status = 504


class NotFoundError(FillMaskError):
    status = 404


class InvalidRequestError(FillMaskError, ValueError):
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


class NotReadyError(FillMaskError):
    status = 503


class StartupError(Exception):
    """Error that prevents the start or a reload, with a message of one line for the operator."""

    def __init__(self, text: str) -> None:
        super().__init__(escape_unprintable(text))


class BundleError(StartupError, ValueError):
    """Error for a bundle that is unreadable or invalid."""


class SettingsError(StartupError, ValueError):
    """Error for an unknown setting or an invalid value."""


def escape_unprintable(text: str) -> str:
    """Return the text with escapes for characters that could end a line or control a terminal."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def to_json(value: object) -> str:
    """Return a value as JSON that every output can encode, with escapes for unpaired surrogates."""
    return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()


def quote(text: str) -> str:
    """Return the text in double quotes on one line, with at most MAX_QUOTED_CHARS characters."""
    quoted = to_json(text[:MAX_QUOTED_CHARS])
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

"""Errors of the service, each with an HTTP status and a message for clients."""

import json
import traceback
from typing import ClassVar

MAX_QUOTED_CHARS = 80


class FillMaskError(Exception):
    """Base class of the errors that are sent to clients.

    Attributes:
        status: HTTP status of the response.
        text: one sentence for the client: what is wrong, where, and what is allowed.
    """

    status: ClassVar[int] = 500

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class MalformedRequestError(FillMaskError):
    """A body or header that cannot be parsed."""

    status = 400


class ContentTypeError(FillMaskError):
    """A content type other than JSON."""

    status = 415


class NotFoundError(FillMaskError):
    """A model or version that is not served."""

    status = 404


class InvalidRequestError(FillMaskError):
    """A JSON body with invalid parameters or input."""

    status = 422


class OverloadedError(FillMaskError):
    """A request beyond the limits of the queue.

    Attributes:
        retry_after_s: estimated time until the requests in the queue are done, in whole seconds.
    """

    status = 429

    def __init__(self, text: str, retry_after_s: int) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


def overloaded_text(retry_after_s: int) -> str:
    """Return the message that clients receive with a 429."""
    return f"The service is overloaded; try again in {retry_after_s} s."


class NotReadyError(FillMaskError):
    """A service that is starting, is stopping or has failed."""

    status = 503


class StartupError(Exception):
    """An error that prevents the start, as one sentence for the operator."""


class BundleError(StartupError):
    """A bundle that cannot be read or fails verification."""


class SettingsError(StartupError):
    """An unknown setting or an invalid value."""


def quote(text: str) -> str:
    """Return the text in double quotes on one line, at most MAX_QUOTED_CHARS characters in all."""
    quoted = json.dumps(text[:MAX_QUOTED_CHARS], ensure_ascii=False)
    if len(quoted) <= MAX_QUOTED_CHARS:
        return quoted
    return quoted[: MAX_QUOTED_CHARS - 2] + '…"'


def safe_traceback(error: BaseException) -> str:
    """Return the tracebacks and types of an error and its causes, without their messages.

    The message of an exception may quote user input, which does not belong in a log.
    """
    lines = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [*traceback.format_tb(cause.__traceback__), f"{type(cause).__name__}\n"]
        cause = cause.__cause__
    return "".join(lines).rstrip()

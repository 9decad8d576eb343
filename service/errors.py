"""The service's errors: what went wrong, as an HTTP status and a sentence a caller may read."""

import json
import traceback
from typing import ClassVar

MAX_QUOTED_CHARS = 80


class FillMaskError(Exception):
    """A request that is not answered with fills.

    Attributes:
        status: HTTP status of the answer.
        text: one sentence for the caller: what, where, what is allowed.
    """

    status: ClassVar[int] = 500

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class MalformedRequestError(FillMaskError):
    """The body is not JSON."""

    status = 400


class ContentTypeError(FillMaskError):
    """The body does not say that it is JSON."""

    status = 415


class NotFoundError(FillMaskError):
    """What the path names is not served."""

    status = 404


class InvalidRequestError(FillMaskError):
    """The body is JSON and asks for something the service does not do."""

    status = 422


class OverloadedError(FillMaskError):
    """The service has as much waiting as it accepts.

    Attributes:
        retry_after_s: whole seconds after which what is waiting now should be done.
    """

    status = 429

    def __init__(self, text: str, retry_after_s: int) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


def overloaded_text(retry_after_s: int) -> str:
    """What an OverloadedError says."""
    return f"The service is overloaded; try again in {retry_after_s} s."


class NotReadyError(FillMaskError):
    """The service is starting, stopping, or has failed."""

    status = 503


class StartupError(Exception):
    """What keeps the service from starting, in one sentence for the person who starts it."""


class BundleError(StartupError):
    """A bundle that cannot be read, or is not what it says it is."""


class SettingsError(StartupError):
    """A setting that is unknown or out of range."""


def quote(text: str) -> str:
    """The text between double quotes, on one line, at most MAX_QUOTED_CHARS long in all."""
    quoted = json.dumps(text[:MAX_QUOTED_CHARS], ensure_ascii=False)
    if len(quoted) <= MAX_QUOTED_CHARS:
        return quoted
    return quoted[: MAX_QUOTED_CHARS - 2] + '…"'


def safe_traceback(error: BaseException) -> str:
    """Where the error was raised and of what type, without its text.

    The text of an exception may quote what a user sent, and that does not belong in a log.
    """
    lines = []
    cause: BaseException | None = error
    while cause is not None:
        lines += [*traceback.format_tb(cause.__traceback__), f"{type(cause).__name__}\n"]
        cause = cause.__cause__
    return "".join(lines).rstrip()

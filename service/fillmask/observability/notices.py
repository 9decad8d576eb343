"""What an answer says beside its results: what the model did not read in the texts as written.

HTTP counts it in the header X-Warnings, Python and the command log it.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from fillmask.observability.request_context import CURRENT_SCOPE, NOTICES

Notice = Literal["unknown_tokens", "literal_special_tokens", "truncated_texts"]

READS_GOLDEN: ContextVar[bool] = ContextVar("fillmask_reads_golden", default=False)

_log = logging.getLogger("fillmask")
_noticed: Counter[Notice] = Counter()  # texts outside of HTTP


def notice(kind: Notice, count: int, text: str) -> None:
    """Count something that the model did not read as written.

    Outside of HTTP, the first, tenth, hundredth text and so on is logged.

    Args:
        count: how many tokens or texts.
        text: the sentence to log.
    """
    scope = CURRENT_SCOPE.get()
    if scope is not None:
        scope.setdefault(NOTICES, Counter())[kind] += count
        return
    _noticed[kind] += 1
    digits = str(_noticed[kind])
    if digits.rstrip("0") == "1":
        _log.warning("%s%s", text, "" if digits == "1" else f" ({digits} such texts)")


@contextmanager
def reading_golden_texts() -> Iterator[None]:
    """Read golden texts in the `with` block, whatever they lose."""
    token = READS_GOLDEN.set(True)
    try:
        yield
    finally:
        READS_GOLDEN.reset(token)


def notices_header(notices: Counter[Notice]) -> bytes:
    return ", ".join(f"{kind}={count}" for kind, count in sorted(notices.items())).encode()

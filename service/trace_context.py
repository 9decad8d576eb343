"""W3C Trace Context: which trace a request belongs to.

https://www.w3.org/TR/trace-context/, section 3.2: a header that is not as it must be is no header.
"""

import re
from collections.abc import Iterable

HEADER = b"traceparent"
_TRACEPARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)


def trace_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The id of the trace, 32 hexadecimal digits; None where the request is in none.

    Args:
        headers: of the request, their names in lower case.
    """
    found = [value for name, value in headers if name == HEADER]
    match = _TRACEPARENT.fullmatch(found[0].strip()) if len(found) == 1 else None
    # what versions to come may append, this one does not have
    if match is None or (match[1] == b"00" and match[3] is not None):
        return None
    return match[2].decode()

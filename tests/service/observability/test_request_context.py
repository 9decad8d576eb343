"""Strict parsing of the traceparent header."""

import pytest

from fillmask.observability.request_context import trace_id

TRACE, PARENT = b"0af7651916cd43dd8448eb211c80319c", b"b7ad6b7169203331"
GOOD = b"00-%s-%s-01" % (TRACE, PARENT)


@pytest.mark.parametrize(
    "value",
    [GOOD, b" " + GOOD + b" ", GOOD[:-2] + b"ff", b"01" + GOOD[2:], b"cc" + GOOD[2:] + b"-x"],
)
def test_valid_traceparent(value: bytes) -> None:
    # The version of the header may be the current version or a later version.
    assert trace_id([(b"host", b"x"), (b"traceparent", value)]) == TRACE.decode()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        GOOD.upper(),
        GOOD + b"-x",
        GOOD[:-1],
        b"ff" + GOOD[2:],
        GOOD.replace(TRACE, b"0" * 32),
        GOOD.replace(PARENT, b"0" * 16),
        GOOD.replace(b"a", b"g"),
        GOOD + b"," + GOOD,
    ],
)
def test_invalid_traceparent_is_ignored(value: bytes) -> None:
    assert trace_id([(b"traceparent", value)]) is None


def test_two_traceparents_are_ignored() -> None:
    # With two traceparent headers the trace would be ambiguous.
    assert trace_id([(b"traceparent", GOOD), (b"traceparent", GOOD)]) is None
    assert trace_id([]) is None

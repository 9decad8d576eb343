"""Parsing of requests in the server that computes nothing."""

from __future__ import annotations

import pytest

from benchmarks.comparison.servers.nothing import request_length

REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"


@pytest.mark.parametrize("cut", range(len(REQUEST)))
def test_part_of_a_request_is_none(cut: int) -> None:
    assert request_length(REQUEST[:cut]) is None


def test_whole_requests_are_measured_with_their_bodies() -> None:
    # Bytes after a request do not count. A request without a body ends with its headers.
    assert request_length(REQUEST) == len(REQUEST)
    assert request_length(REQUEST + REQUEST) == len(REQUEST)
    assert request_length(b"GET / HTTP/1.1\r\n\r\n") == 18

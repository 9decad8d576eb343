"""Socket filter that drops new connections during the shutdown."""

import socket
import sys

import pytest

from fillmask.http.server import drop_new_connections


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has such a filter")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_filter_drops_new_connections_only(host: str) -> None:
    # A new client gets no reply and no TCP reset.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as listener,
        socket.create_connection(listener.getsockname()[:2]) as early,
    ):
        early.sendall(b"before ")
        drop_new_connections(listener)
        early.sendall(b"and after")
        with pytest.raises(TimeoutError):
            socket.create_connection(listener.getsockname()[:2], timeout=0.3)
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(5)
            received = b""
            while len(received) < len(b"before and after"):
                received += accepted.recv(100)
            accepted.sendall(b"answer")
            assert early.recv(100) == b"answer"
    assert received == b"before and after"


def test_system_without_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    # Sandboxes and systems other than Linux may lack socket filters.
    closed = socket.socket()
    closed.close()
    drop_new_connections(closed)
    monkeypatch.setattr(sys, "platform", "other")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        drop_new_connections(listener)
        socket.create_connection(listener.getsockname()).close()

"""The options of the listening socket, and its end."""

import asyncio
import socket

import pytest

from fillmask.listener import bound_socket, stop_listening


async def test_connections_send_without_delay() -> None:
    # Nagle's algorithm would delay a response until the client acknowledges the previous one.
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def accepted(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with bound_socket("127.0.0.1", 0) as listener:
        async with await asyncio.start_server(accepted, sock=listener):
            _, client = await asyncio.open_connection(*listener.getsockname())
            nodelay = await found
            client.close()
            await client.wait_closed()
    assert nodelay != 0


@pytest.mark.parametrize("dual", [True, False])
def test_all_addresses_are_those_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, *, dual: bool
) -> None:
    # A kernel without IPv6 has no [::], and its clients use IPv4.
    if dual and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: dual)
    with bound_socket("::", 0) as listener:
        listener.listen()
        host, port = listener.getsockname()[:2]
        assert host == ("::" if dual else "0.0.0.0")  # noqa: S104 - of a test
        for address in ("127.0.0.1", "::1") if dual else ("127.0.0.1",):
            socket.create_connection((address, port), 5).close()


async def test_waiting_connections_are_accepted_before_the_end() -> None:
    with bound_socket("127.0.0.1", 0) as listener:
        server = await asyncio.start_server(print, sock=listener, start_serving=False)
        listener.listen(8)
        address = listener.getsockname()
        with socket.create_connection(address) as waiting:
            stopping = asyncio.create_task(stop_listening(listener, server, 20))
            await asyncio.sleep(0)
            connection, _ = listener.accept()
            await stopping
            waiting.send(b"more")
            assert connection.recv(4) == b"more"
            connection.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)


async def test_a_connection_that_nobody_accepts_does_not_prevent_the_end() -> None:
    with bound_socket("127.0.0.1", 0) as listener:
        server = await asyncio.start_server(print, sock=listener, start_serving=False)
        listener.listen(8)
        with socket.create_connection(listener.getsockname()):
            await stop_listening(listener, server, 0.01)
            assert listener.fileno() == -1

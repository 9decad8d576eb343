"""The listening socket, with the kernel's limits for each connection, and its end."""

import asyncio
import contextlib
import select
import socket
import sys
import time

# Limits of the kernel for each connection. A pod is charged for the bytes that the kernel holds.
# The bytes of one read are also the work that a hostile client can put between two other requests:
# h11 takes 8 us for a chunk of one byte.
_RECEIVE_BYTES = 16 * 1024
_UNSENT_BYTES = 32 * 1024
_UNREAD_TIMEOUT_MS = 30_000


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a TCP socket with the address, whose options its accepted connections inherit.

    Args:
        host: `::` means all addresses of IPv6 and IPv4, also on a machine without IPv6.

    Raises:
        OSError: the address does not exist or is in use.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    dual = address[0] == "::"
    if dual and not socket.has_dualstack_ipv6():
        dual, family, host = False, socket.AF_INET, "0.0.0.0"  # noqa: S104 - as asked for
    with contextlib.ExitStack() as closing:
        # asyncio disables Nagle's algorithm only if the socket names its protocol. With the
        # algorithm, a response in two parts waits about 40 ms for the client's delayed
        # acknowledgement.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        closing.callback(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_TIMEOUT_MS)
        if dual:  # whatever the kernel's default is
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
        closing.pop_all()
    return listener


async def stop_listening(
    listener: socket.socket, server: asyncio.AbstractServer, patience_s: float
) -> None:
    """Close the listener when no connection waits in it, because the kernel would reset it.

    Args:
        patience_s: seconds until the listener is closed in any case.
    """
    # From now on the kernel answers no further client while one waits. It tries again, and learns
    # that nobody listens.
    listener.listen(0)
    end_s = time.monotonic() + patience_s
    while select.select([listener], [], [], 0)[0] and time.monotonic() < end_s:  # noqa: ASYNC110 - the loop accepts them
        await asyncio.sleep(0)
    server.close()

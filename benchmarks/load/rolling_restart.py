"""Failed requests during rolling restarts of two services behind nginx.

    .venv-dev/bin/python -m benchmarks.load.rolling_restart [RESTARTS]

nginx (Debian's package) is a plain proxy without readiness checks. nginx retries a request at the
other service only if nginx cannot connect to the first service. A restart sends SIGTERM to one
service and starts a new service on the same port. Clients send requests during all restarts.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from subprocess import Popen

from tests.chaos.load import ask_until
from tests.chaos.process import free_port, serving

CLIENTS = 16
PAUSE_S = 1.0
CONFIGURATION = """
daemon off;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {directory};
    proxy_temp_path {directory};
    fastcgi_temp_path {directory};
    uwsgi_temp_path {directory};
    scgi_temp_path {directory};
    upstream fillmask {{
        # no max_fails, because nginx would otherwise skip a restarted server for 10 s
        server 127.0.0.1:{first} max_fails=0;
        server 127.0.0.1:{second} max_fails=0;
        {keepalive}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://fillmask;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
    }}
}}
"""


def main() -> None:
    """Print the numbers of answered and of failed requests."""
    restarts = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| connections to the services | restarts | answered | failed |\n|---|--:|--:|--:|")
    for name, keepalive in (("one per request", ""), ("kept", "keepalive 16;")):
        answered, failed = asyncio.run(restart(restarts, keepalive))
        print(f"| {name} | {restarts} | {answered} | {failed} |", flush=True)


async def restart(restarts: int, keepalive: str) -> tuple[int, int]:
    """Restart two services in turn under load.

    Returns:
        The numbers of successful and of failed requests.
    """
    ports = [free_port(), free_port()]
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        running = [
            (await stack.enter_async_context(serving("--threads=1", port=port)))[0]
            for port in ports
        ]
        proxy = stack.enter_context(nginx(ports, keepalive))
        asking = asyncio.create_task(ask_until(stop, "127.0.0.1", proxy, CLIENTS))
        await asyncio.sleep(PAUSE_S)
        for number in range(restarts):
            place = number % 2
            running[place].send_signal(signal.SIGTERM)
            if (code := await running[place].wait()) != 0:
                raise SystemExit(f"the service must exit with code 0 (got {code})")
            next_one = serving("--threads=1", port=ports[place])
            running[place], _ = await stack.enter_async_context(next_one)
            await asyncio.sleep(PAUSE_S)
        stop.set()
        outcome = await asking
    answered = outcome.statuses.pop(200, 0)
    return answered, outcome.statuses.total() + outcome.lost + outcome.refused


@contextmanager
def nginx(ports: list[int], keepalive: str) -> Iterator[int]:
    """Run a proxy in front of the two ports.

    Yields:
        Port of the proxy.
    """
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        raise SystemExit("nginx is not installed. Run: apt-get install nginx-light")
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "nginx.conf"
        first, second = ports
        file.write_text(
            CONFIGURATION.format(
                directory=directory, first=first, second=second, port=port, keepalive=keepalive
            ),
            encoding="utf-8",
        )
        with Popen([program, "-c", str(file), "-p", directory]) as process:
            try:
                await_listener(port)
                yield port
            finally:
                process.terminate()


def await_listener(port: int) -> None:
    """Wait until a server listens on a port, for at most 5 s."""
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"nginx does not listen on port {port} after 5 s; read its errors above")


if __name__ == "__main__":
    main()

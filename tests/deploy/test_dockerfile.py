"""Dependencies, labels, settings and health check of the Dockerfile.

These tests need no container engine. `make image-check` builds and runs the image.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fillmask import __version__, health_check
from tests.deploy import files
from tests.service.server_process import SERVE, start_process

IMAGE = files.IMAGE
ALL = [instruction for stage in files.STAGES for instruction in stage]
PROJECT = tomllib.loads((files.ROOT / "pyproject.toml").read_text())["project"]


def stage(name: str) -> list[files.Instruction]:
    """Return the instructions of a stage with a name."""
    (found,) = (each for each in files.STAGES if each[0].value.endswith(f" AS {name}"))
    return found


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "argument", "extras"),
    [("dependencies", "parquet,otel", ["parquet", "otel"]), ("export", "", ["train"])],
)
def test_dependencies_are_those_of_pyproject(name: str, argument: str, extras: list[str]) -> None:
    # The test runs the Python line of the build that extracts the requirements.
    (run,) = (run for run in files.values(stage(name), "RUN") if "tomllib" in run)
    extract = re.search(r'python -c "([^"]+)"', run)
    assert extract
    output = subprocess.run(
        [sys.executable, "-c", extract[1]],
        cwd=files.ROOT,
        env=os.environ | {"EXTRAS": argument},
        capture_output=True,
        check=True,
    ).stdout
    added = [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    assert output.decode().splitlines() == PROJECT["dependencies"] + added


def test_serving_image_is_the_last_stage_and_runs_on_any_cpu() -> None:
    # `make image-check` looks at the files of the image and at its processes
    assert json.loads(files.values(IMAGE, "ENTRYPOINT")[0]) == ["python", "-m", "fillmask"]
    # without a target, zig compiles for the very CPU that it runs on
    (run,) = (run for run in files.values(stage("native"), "RUN") if "ziglang" in run)
    assert 'CXX="python -m ziglang c++ -target $(uname -m)-linux-gnu"' in run


def without_the_hubs_client() -> tuple[set[str], set[str]]:
    """Return the distributions for serving, with and without the Hugging Face Hub's client."""
    found = []
    for left_out in ("", "huggingface-hub"):
        needed: set[str] = set()
        asked = [Requirement(line) for line in PROJECT["dependencies"]]
        while asked:
            requirement = asked.pop()
            name = canonicalize_name(requirement.name)
            marker = requirement.marker
            if name in needed | {left_out} or (marker and not marker.evaluate({"extra": ""})):
                continue
            needed.add(name)
            asked += [Requirement(line) for line in metadata.requires(name) or []]
        found.append(needed)
    return found[0], found[1]


def test_image_is_without_what_only_the_hubs_client_needs() -> None:
    # The build uninstalls the client and the packages that only the client needs.
    (run,) = (run for run in files.values(ALL, "RUN") if "hf-xet" in run)
    uninstalled = re.search(r"uninstall --disable-pip-version-check --yes ([\w -]+) &&", run)
    assert uninstalled
    needed, remaining = without_the_hubs_client()
    assert set(uninstalled[1].split()) == needed - remaining
    assert "huggingface-hub" in needed


@pytest.mark.processes
def test_service_answers_without_the_hubs_client() -> None:
    # The test blocks imports of the packages that the image lacks.
    needed, remaining = without_the_hubs_client()
    packages = metadata.packages_distributions()
    missing = {
        package
        for package, distributions in packages.items()
        if {canonicalize_name(name) for name in distributions} & (needed - remaining)
    }
    assert "huggingface_hub" in missing
    script = f"import sys; sys.modules.update(dict.fromkeys({sorted(missing)})); {SERVE}"
    with start_process(code=script, forks=False) as (_, url):
        filled = httpx.post(f"{url}/fill-mask", json={"inputs": "The [MASK] barked."})
    assert filled.status_code == 200


def test_labels_are_those_of_the_project() -> None:
    labels = files.assignments(IMAGE, "LABEL")
    prefix = "org.opencontainers.image."
    (base,) = {base for base in files.values(ALL, "FROM") if base.endswith(" AS python")}
    assert (
        labels.items()
        >= {
            f"{prefix}version": __version__,
            f"{prefix}licenses": PROJECT["license"],
            f"{prefix}description": PROJECT["description"],
            f"{prefix}base.name": f"docker.io/library/{base.removesuffix(' AS python')}",
        }.items()
    )


@contextmanager
def server_that_answers(status: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the port and the requested paths of a server that returns `status` for every GET."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["python", "-m", "fillmask", "--port", "{port}"], {"FILLMASK_PORT": "1"}),
        (["python", "-m", "fillmask", "--threads=2", "--port={port}"], {}),
        (["/sbin/docker-init", "--", "python", "-m", "fillmask", "--port", "{port}"], {}),
        (["fillmask-serve", "--host", "127.0.0.1"], {"FILLMASK_PORT": "{port}"}),
        (["fillmask-serve"], {"fillmask_port": "{port}", "FILLMASK_HOST": "localhost"}),
        (["fillmask-serve"], {"FILLMASK_PORT": "{port}", "http_proxy": "http://127.0.0.1:9"}),
    ],
)
def test_health_check_asks_where_the_service_listens(
    words: list[str],
    variables: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = tmp_path / "proc" / "1" / "cmdline"
    process.parent.mkdir(parents=True)
    with server_that_answers(200) as (port, asked):
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(port=port))
        process.write_text("".join(f"{word}\0" for word in words).format(port=port))
        assert health_check.main(tmp_path) == 0
    assert asked == ["/health/ready"]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_health_check_of_all_addresses_asks_one_that_others_reach(
    family: socket.AddressFamily, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a network of IPv6 alone, a service on 0.0.0.0 answers only on 127.0.0.1, where nobody asks.
    class Network(socket.socket):
        def connect(self, _: Any) -> None:
            if self.family != family:
                raise OSError("no route")

        def getsockname(self) -> Any:
            return ("192.0.2.7" if family == socket.AF_INET else "2001:db8::7", 1)

    asked: list[object] = []

    class Connection:
        def __init__(self, host: str, *_: object, **__: object) -> None:
            asked.append(host)

        def request(self, *_: object) -> None:
            raise ConnectionRefusedError

    monkeypatch.setattr(socket, "socket", Network)
    monkeypatch.setattr(http.client, "HTTPConnection", Connection)
    for host in ("::", "0.0.0.0", "::1"):  # noqa: S104 - not of a server
        monkeypatch.setenv("FILLMASK_HOST", host)
        with pytest.raises(ConnectionRefusedError):
            health_check.main(tmp_path)
    address = "192.0.2.7" if family == socket.AF_INET else "2001:db8::7"
    assert asked == [address, address, "::1"]


# words of the two health checks, which are in exec form
CHECKS = {
    "image": json.loads(files.values(IMAGE, "HEALTHCHECK")[0].partition("CMD ")[2]),
    "compose": files.read_yaml(files.COMPOSE)["services"]["fillmask"]["healthcheck"]["test"][1:],
}


@pytest.mark.processes
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_health_check_follows_readiness(check: list[str], paths: set[str]) -> None:
    def checked(port: int) -> int:
        environment = os.environ | {"FILLMASK_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
        command = [sys.executable, *check[1:]]
        return subprocess.run(
            command, env=environment, stderr=subprocess.DEVNULL, check=False
        ).returncode

    assert check[0] == "python"
    for status, exit_code in ((200, 0), (503, 1)):
        with server_that_answers(status) as (port, asked):
            assert checked(port) == exit_code
        assert set(asked) == {"/health/ready"} <= paths
    assert checked(port) == 1  # nothing listens any more

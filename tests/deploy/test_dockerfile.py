"""Dependencies, labels, settings and health check of the Dockerfile.

These tests need no container engine. `make image-check` builds and runs the image.
"""

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.running_server import running_server
from fillmask import __version__
from tests.deploy import files

STAGES = files.stages(files.DOCKERFILE.read_text())
IMAGE = STAGES[-1]
ALL = [instruction for stage in STAGES for instruction in stage]


def stage(name: str) -> list[files.Instruction]:
    """Return the instructions of a stage with a name."""
    (found,) = (each for each in STAGES if each[0].value.endswith(f" AS {name}"))
    return found


@pytest.mark.processes
@pytest.mark.parametrize(("name", "extra"), [("dependencies", None), ("export", "train")])
def test_dependencies_are_those_of_pyproject(name: str, extra: str | None) -> None:
    # The test runs the Python line of the build that extracts the requirements.
    (run,) = (run for run in files.values(stage(name), "RUN") if "tomllib" in run)
    extract = re.search(r'python -c "([^"]+)"', run)
    assert extract
    output = subprocess.run(
        [sys.executable, "-c", extract[1]], cwd=files.ROOT, capture_output=True, check=True
    ).stdout
    project = tomllib.loads((files.ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"][extra] if extra else []
    assert output.decode().splitlines() == project["dependencies"] + extras


def test_operators_run_on_older_machines_than_the_builder() -> None:
    # without a target, zig compiles for the very CPU that it runs on
    (run,) = (run for run in files.values(stage("native"), "RUN") if "ziglang" in run)
    assert 'CXX="python -m ziglang c++ -target $(uname -m)-linux-gnu"' in run


def test_serving_image_is_the_last_stage_and_has_nothing_of_the_export() -> None:
    copied = files.values(IMAGE, "COPY")
    assert {word for copy in copied for word in copy.split() if word.startswith("--from=")} == {
        "--from=dependencies",
        "--from=code",
        "--from=native",
    }
    assert files.values(stage("code"), "COPY") == ["LICENSE ./", "service/fillmask/ fillmask/"]
    assert "dev.txt" not in " ".join(files.values(stage("dependencies"), "COPY"))
    assert json.loads(files.values(IMAGE, "ENTRYPOINT")[0]) == ["python", "-m", "fillmask"]


def test_image_of_the_export_has_pytorchs_build_for_cpus() -> None:
    assert files.values(stage("export"), "ARG") == ["TORCH_BACKEND=cpu"]
    (run,) = (run for run in files.values(stage("export"), "RUN") if "uv pip" in run)
    assert '--torch-backend "$TORCH_BACKEND"' in run
    assert "--constraint dev.txt" in run
    assert re.search(
        r"^torch==", (files.ROOT / "constraints" / "dev.txt").read_text(), re.MULTILINE
    )
    assert json.loads(files.values(stage("export"), "ENTRYPOINT")[0]) == [
        "python",
        "-m",
        "fillmask_export",
    ]


def without_the_hubs_client() -> tuple[set[str], set[str]]:
    """Return the distributions for serving, with and without the Hugging Face Hub's client."""
    project = tomllib.loads((files.ROOT / "pyproject.toml").read_text())["project"]
    found = []
    for left_out in ("", "huggingface-hub"):
        needed: set[str] = set()
        asked = [Requirement(line) for line in project["dependencies"]]
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
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(missing)})); "
        "from fillmask.__main__ import main; main()"
    )
    with running_server(command=(sys.executable, "-c", script)) as server:
        filled = httpx.post(f"{server.url}/fill-mask", json={"inputs": "The [MASK] barked."})
    assert filled.status_code == 200


@pytest.mark.processes
def test_image_imports_for_bytecode_what_there_is() -> None:
    (compiling,) = (run for run in files.values(IMAGE, "RUN") if "import fillmask" in run)
    _, *arguments = json.loads(compiling)
    subprocess.run([sys.executable, *arguments], cwd=files.ROOT, check=True)


def test_image_listens_on_the_exposed_port_of_all_addresses() -> None:
    # The default host is 127.0.0.1, which a published port cannot reach.
    assert files.image_settings().host == "0.0.0.0"  # noqa: S104 - within a container
    assert files.values(IMAGE, "EXPOSE") == [str(files.image_settings().port)]


def test_labels_are_those_of_the_project() -> None:
    labels = files.assignments(IMAGE, "LABEL")
    project = tomllib.loads((files.ROOT / "pyproject.toml").read_text())["project"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == project["license"]
    assert labels["org.opencontainers.image.description"] == project["description"]
    (base,) = {base for base in files.values(ALL, "FROM") if base.endswith(" AS python")}
    name = base.removesuffix(" AS python")
    assert labels["org.opencontainers.image.base.name"] == f"docker.io/library/{name}"


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


CHECKS = pytest.mark.parametrize(
    "check", [files.health_check_command(), files.compose_health_check()], ids=["image", "compose"]
)


@pytest.mark.processes
@CHECKS
@pytest.mark.parametrize(("status", "exit_code"), [(200, 0), (503, 1)])
def test_health_check_follows_readiness(
    check: list[str], status: int, exit_code: int, paths: set[str]
) -> None:
    (python, *arguments) = check
    assert python == "python"
    with server_that_answers(status) as (port, asked):
        environment = os.environ | {"FILLMASK_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
        checked = subprocess.run([sys.executable, *arguments], env=environment, check=False)
    assert checked.returncode == exit_code
    assert asked == ["/health/ready"]
    assert set(asked) <= paths


@pytest.mark.processes
@CHECKS
def test_health_check_fails_when_nothing_listens(check: list[str]) -> None:
    with server_that_answers(200) as (port, _):
        pass
    environment = os.environ | {"FILLMASK_PORT": str(port)}
    command = [sys.executable, *check[1:]]
    checked = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert checked.returncode == 1

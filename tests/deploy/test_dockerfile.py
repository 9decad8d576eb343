"""The image serves, holds nothing else, and can be run with the least of rights."""

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
from service import __version__
from tests.deploy import files

STAGES = files.stages(files.DOCKERFILE.read_text())
IMAGE = STAGES[-1]
ALL = [instruction for stage in STAGES for instruction in stage]


def copied_from_context() -> set[str]:
    """What the build takes from the checkout."""
    copies = [value.split() for value in files.values(ALL, "COPY") if "--from" not in value]
    return {source.rstrip("/") for words in copies for source in words[:-1]}


def test_image_takes_only_what_serves_from_the_checkout() -> None:
    """Neither model/ nor export/ nor anything else enters the build."""
    serving = {"pyproject.toml", "constraints/serve.txt", "LICENSE", "service"}
    assert copied_from_context() == serving


def test_dockerignore_lets_in_what_is_copied_and_no_more() -> None:
    """The builder is sent no data, no environments and no history."""
    lines = files.DOCKERIGNORE.read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    assert {line[1:] for line in patterns if line.startswith("!")} == copied_from_context()


def test_base_image_is_pinned_to_a_python_and_a_debian_release() -> None:
    """A rebuild changes neither the Python minor version nor the Debian release."""
    named = {words[2] for value in files.values(ALL, "FROM") if len(words := value.split()) == 3}
    bases = {value.split()[0] for value in files.values(ALL, "FROM")} - named
    assert len(bases) == 1
    base = bases.pop()
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", base)
    recorded = files.assignments(IMAGE, "LABEL")["org.opencontainers.image.base.name"]
    assert recorded == f"docker.io/library/{base}"


def test_change_of_code_does_not_reinstall_dependencies() -> None:
    """The stage that installs has not seen the code."""
    (installing,) = (
        stage for stage in STAGES if any(" install " in run for run in files.values(stage, "RUN"))
    )
    assert files.values(installing, "COPY") == ["pyproject.toml constraints/serve.txt ./"]
    (run,) = files.values(installing, "RUN")
    assert "--constraint serve.txt" in run


def test_dependencies_are_those_of_pyproject() -> None:
    """The requirements that the build extracts are the project's serving dependencies."""
    extract = re.search(r'python -c "([^"]+tomllib[^"]+)"', "\n".join(files.values(ALL, "RUN")))
    assert extract
    output = subprocess.run(
        [sys.executable, "-c", extract[1]], cwd=files.ROOT, capture_output=True, check=True
    ).stdout
    project = tomllib.loads((files.ROOT / "pyproject.toml").read_text())["project"]
    assert output.decode().splitlines() == project["dependencies"]


def without_the_hubs_client() -> tuple[set[str], set[str]]:
    """The distributions that the serving dependencies need, and those that remain without it."""
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
    """What is uninstalled again is that client and all that only it needs."""
    (run,) = (run for run in files.values(ALL, "RUN") if "hf-xet" in run)
    uninstalled = re.search(r"uninstall --disable-pip-version-check --yes ([\w -]+) &&", run)
    assert uninstalled
    needed, remaining = without_the_hubs_client()
    assert set(uninstalled[1].split()) == needed - remaining
    assert "huggingface-hub" in needed


def test_service_answers_without_the_hubs_client() -> None:
    """It fills a mask where none of what the image lacks can be imported."""
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
        "from service.__main__ import main; main()"
    )
    with running_server(command=(sys.executable, "-c", script)) as server:
        filled = httpx.post(f"{server.url}/fill-mask", json={"inputs": "The [MASK] barked."})
    assert filled.status_code == 200


def test_serving_constraints_pin_no_torch() -> None:
    """Every serving dependency has one version, and torch and onnx are none of them."""
    pins = (files.ROOT / "constraints" / "serve.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert not {"torch", "onnx", "safetensors", "transformers"} & {
        pin.partition("==")[0].lower() for pin in pins
    }


def test_image_has_no_package_manager_of_python() -> None:
    """Neither the environment nor the base's Python can install anything."""
    uninstalled = [run for run in files.values(IMAGE, "RUN") if "uninstall" in run]
    assert {"pip", "setuptools", "wheel"} <= set(json.loads(uninstalled[0]))
    assert any("venv --without-pip" in run for run in files.values(ALL, "RUN"))


def test_image_runs_as_a_number_that_is_not_root() -> None:
    """Kubernetes can verify runAsNonRoot, and root is never an option by default."""
    assert all(number > 0 for number in files.image_user())


def test_entrypoint_is_the_service_without_a_shell() -> None:
    """SIGTERM reaches the service, and arguments of `docker run` are its flags."""
    assert json.loads(files.values(IMAGE, "ENTRYPOINT")[-1]) == ["python", "-m", "service"]
    assert json.loads(files.values(IMAGE, "CMD")[-1]) == []


def test_image_holds_the_bytecode_of_both_commands() -> None:
    """The service's and that without a server, each by its module."""
    (compiling,) = (run for run in files.values(IMAGE, "RUN") if "import service" in run)
    modules = ["service.__main__", "service.serve", "service.cli.__main__"]
    assert json.loads(compiling)[2] == f"import {', '.join(modules)}"
    for module in modules:
        assert (files.ROOT / module.replace(".", "/")).with_suffix(".py").is_file()


def test_image_listens_on_the_default_port_of_all_addresses() -> None:
    """A published port reaches the service."""
    environment = files.assignments(IMAGE, "ENV")
    assert environment["FILLMASK_HOST"] == "0.0.0.0"  # noqa: S104 - within a container
    assert environment["FILLMASK_PORT"] == str(files.DEFAULT_PORT)
    assert files.values(IMAGE, "EXPOSE") == [str(files.DEFAULT_PORT)]


def test_image_says_what_it_is() -> None:
    """The labels name the version that is inside, and its licence."""
    labels = files.assignments(IMAGE, "LABEL")
    project = tomllib.loads((files.ROOT / "pyproject.toml").read_text())["project"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.licenses"] == project["license"]
    assert labels["org.opencontainers.image.description"] == project["description"]


@contextmanager
def server_that_answers(status: int) -> Iterator[tuple[int, list[str]]]:
    """A server that answers every GET with a status: its port, and the paths asked so far."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Not into the tests' output."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "exit_code"), [(200, 0), (503, 1)])
def test_health_check_follows_readiness(status: int, exit_code: int, paths: set[str]) -> None:
    """The image's own check asks a path that exists, heeds the port and no proxy, and can fail."""
    (python, *arguments) = files.health_check_command()
    assert python == "python"
    with server_that_answers(status) as (port, asked):
        environment = os.environ | {"FILLMASK_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
        checked = subprocess.run([sys.executable, *arguments], env=environment, check=False)
    assert checked.returncode == exit_code
    assert asked == ["/health/ready"]
    assert set(asked) <= paths


def test_health_check_fails_when_nothing_listens() -> None:
    """A dead service is not healthy."""
    with server_that_answers(200) as (port, _):
        pass
    environment = os.environ | {"FILLMASK_PORT": str(port)}
    command = [sys.executable, *files.health_check_command()[1:]]
    checked = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert checked.returncode == 1

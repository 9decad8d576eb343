"""The wheel, and the serving install with its size, packages and commands."""

from __future__ import annotations

import email
import email.policy
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from fillmask import __version__
from tests.docs import pages
from tests.docs.code_examples import python_script
from tests.docs.shell_examples import check_shell_examples
from tests.service.server_process import start_process

pytestmark = [pytest.mark.processes, pytest.mark.slow]  # builds and installs the distribution

ROOT = Path(__file__).parents[1]
# 350 MB with the bytecode of all modules, which takes 48 MB
MAX_INSTALL_BYTES = 302e6


# the pip of the tests' environment, which resolves faster than the pip of Python 3.11
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
VARIABLES = {k: v for k, v in os.environ.items() if not k.startswith(("FILLMASK_", "PYTHON"))}
URL = "https://example.com/team/fillmask"
TAG = f"{URL}/blob/v{__version__}"
INSTALL_PAGE = pages.read(pages.DOCS / "install.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel of the checkout, in a directory of its own."""
    directory = tmp_path_factory.mktemp("dist")
    command = [*PIP, "wheel", "--no-deps", "--wheel-dir", str(directory), str(ROOT)]
    subprocess.run(command, check=True, cwd=directory, env=os.environ | {"PROJECT_URL": URL})
    [path] = directory.iterdir()
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fresh virtual environment with the wheel, outside of the checkout."""
    path = tmp_path_factory.mktemp("serve") / "venv"
    subprocess.run([sys.executable, "-m", "venv", path], check=True)
    pip = [*PIP, "--python", str(path / "bin/python")]
    # bytecode of all modules takes CPU time, and the service writes the bytecode that it needs
    options = ["--no-compile", "-c", str(ROOT / "constraints" / "serve.txt")]
    subprocess.run([*pip, "install", *options, str(wheel)], check=True, cwd=path)
    return path


def read(wheel: Path, name: str) -> str:
    """Return the text of a file of the wheel's metadata."""
    with ZipFile(wheel) as archive:
        [path] = [each for each in archive.namelist() if each.endswith(f".dist-info/{name}")]
        return archive.read(path).decode()


def test_wheel_describes_itself(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    packages = {"fillmask", "fillmask_model", "fillmask_export"}
    assert {name.partition("/")[0] for name in names} == packages
    assert {f"{package}/py.typed" for package in packages} <= names
    assert not [name for name in names if name.endswith(".xz")]
    entries = re.findall(r"^([\w-]+) = ([\w.]+):", read(wheel, "entry_points.txt"), re.MULTILINE)
    commands = {"fillmask", "fillmask-serve", "fillmask-export", "fillmask-train"}
    assert {command for command, _ in entries} == commands
    assert {f"{module.replace('.', '/')}.py" for _, module in entries} <= names
    metadata = email.message_from_string(read(wheel, "METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0"
    classifiers = "\n".join(metadata.get_all("Classifier", []))
    versions = re.findall(r":: Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    tested = pages.section(INSTALL_PAGE, "Python versions")
    assert versions == re.findall(r"3\.\d+", "".join(re.findall(r"^\|[^|]+", tested, re.MULTILINE)))
    assert wheel.name in INSTALL_PAGE


def test_wheel_leads_to_the_repository(wheel: Path) -> None:
    # The repository's address is known only while a release is built.
    metadata = email.message_from_string(read(wheel, "METADATA"), policy=email.policy.default)
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert (urls["Source"], urls["Changelog"]) == (URL, f"{TAG}/CHANGELOG.md")
    readme = metadata.get_payload()
    links = re.findall(r"\]\(([^)\s]+)\)", str(readme))
    assert links
    assert all(link.startswith(("https://", "http://")) for link in links)
    assert f"({URL}/raw/v{__version__}/docs/" in str(readme)  # of the pictures


def test_is_under_350_mb(environment: Path) -> None:
    # The size includes all files of the environment, pip and the built-in model.
    total = sum(f.stat().st_size for f in environment.rglob("*") if not f.is_symlink())
    assert 30e6 < total < MAX_INSTALL_BYTES


def test_has_no_torch_and_installs_only_pinned_versions(environment: Path) -> None:
    # The versions are those of the constraint file.
    freeze = [str(environment / "bin/pip"), "freeze", "--exclude", "fillmask"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.split()
    pinned = (ROOT / "constraints" / "serve.txt").read_text().split()
    # pip writes a dot in a name as it is, uv as a hyphen
    assert {re.sub(r"\.(?=\D.*==)", "-", one) for one in listed} <= set(pinned)
    assert not [name for name in listed if name.startswith(("torch", "onnx=", "transformers"))]


def test_serves_the_builtin_model_and_stops_on_sigterm(environment: Path, tmp_path: Path) -> None:
    # The working directory does not matter.
    command = (str(environment / "bin/fillmask-serve"),)
    with start_process(command=command, cwd=tmp_path, env=VARIABLES) as (process, url):
        body = {"inputs": "The [MASK] barked at the mailman."}
        fills = httpx.post(f"{url}/fill-mask", json=body).raise_for_status().json()
        assert httpx.get(f"{url}/playground/theme.js").raise_for_status().content
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert "dog" in {fill["token_str"] for fill in fills}


def test_first_fill_needs_two_commands(environment: Path, tmp_path: Path) -> None:
    # The first command is the installation of the wheel. The page shows the second command.
    path = f"{environment / 'bin'}{os.pathsep}{VARIABLES['PATH']}"
    assert check_shell_examples(INSTALL_PAGE, tmp_path, VARIABLES | {"PATH": path}) == 1
    assert list(tmp_path.iterdir()) == []


def run(
    environment: Path, command: str, *arguments: str, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment in a directory."""
    return subprocess.run(
        [environment / "bin" / command, *arguments],
        cwd=cwd,
        env=VARIABLES,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_fills_without_a_server(environment: Path, tmp_path: Path) -> None:
    # The command fills a text and a file. The error about Parquet names the missing extra.
    fillmask = partial(run, environment, "fillmask", cwd=tmp_path)
    text = "The [MASK] barked at the mailman."
    done = fillmask(text)
    assert ("The dog barked at the mailman." in done.stdout, done.stderr) == (True, "")
    (tmp_path / "texts.txt").write_text(f"{text}\n")
    assert fillmask("--input", "texts.txt", "--output", "fills.jsonl").returncode == 0
    assert '"token_str":"dog"' in (tmp_path / "fills.jsonl").read_text()
    done = fillmask("--input", "texts.txt", "--output", "fills.parquet")
    assert done.returncode == 2
    assert "its extra parquet (docs/install.md)" in done.stderr


def test_the_library_works_beside_packages_with_any_names(
    environment: Path, tmp_path: Path
) -> None:
    # The working directory has packages called like our source roots, which raise on import.
    for name in ("service", "model", "export"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError\n")
    code, _ = python_script(pages.read(pages.DOCS / "python.md"))
    (tmp_path / "page.py").write_text(code)
    done = run(environment, "python", "page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["fillmask-train", "fillmask-export"])
def test_commands_that_need_torch_say_so(environment: Path, command: str, tmp_path: Path) -> None:
    # The error is one line and names the missing extra.
    done = run(environment, command, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'PATH/TO/WHEEL[train]'" in done.stderr
    assert done.stderr.count("\n") == 1

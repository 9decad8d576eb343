"""The serving install of `make serve`: its size, packages and commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from benchmarks.running_server import running_server

ROOT = Path(__file__).parents[1]
# 350 MB with the bytecode of all modules, which takes 48 MB
MAX_INSTALL_BYTES = 302e6


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fresh virtual environment with the built wheel, outside of the checkout."""
    path = tmp_path_factory.mktemp("serve") / "venv"
    subprocess.run([sys.executable, "-m", "venv", path], check=True)
    # the pip of the tests' environment, which resolves faster than the pip of Python 3.11
    pip = [sys.executable, "-m", "pip", "--python", str(path / "bin/python")]
    # bytecode of all modules takes CPU time, and the service writes the bytecode that it needs
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    constraints = str(ROOT / "constraints" / "serve.txt")
    subprocess.run([*pip, "install", *options, "-c", constraints, str(ROOT)], check=True, cwd=path)
    return path


def test_is_under_350_mb(environment: Path) -> None:
    # The size includes all files of the environment, pip and the built-in model.
    total = sum(f.stat().st_size for f in environment.rglob("*") if not f.is_symlink())
    assert 30e6 < total < MAX_INSTALL_BYTES


def test_has_no_torch_and_installs_only_pinned_versions(environment: Path) -> None:
    # The versions are those of the constraint file.
    freeze = [str(environment / "bin/pip"), "freeze", "--exclude", "fillmask"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.split()
    pinned = (ROOT / "constraints" / "serve.txt").read_text().split()
    assert set(listed) <= set(pinned)
    assert not [name for name in listed if name.startswith(("torch", "onnx=", "transformers"))]


def test_serves_the_builtin_model_and_stops_on_sigterm(environment: Path, tmp_path: Path) -> None:
    # The working directory does not matter.
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("FILLMASK_", "PYTHON"))}
    command = (str(environment / "bin/fillmask-serve"),)
    with running_server(command=command, cwd=tmp_path, env=variables) as server:
        request = urllib.request.Request(  # noqa: S310 - our own server's address
            f"{server.url}/fill-mask",
            data=json.dumps({"inputs": "The [MASK] barked at the mailman."}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - the same
            fills = json.load(response)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0
    assert "dog" in {fill["token_str"] for fill in fills}


def test_carries_the_playground(environment: Path) -> None:
    [installed] = environment.glob("lib/python*/site-packages/service/playground")
    files = {path.name: path.read_bytes() for path in (ROOT / "service" / "playground").iterdir()}
    assert "index.html" in files
    assert {path.name: path.read_bytes() for path in installed.iterdir()} == files


def test_fills_without_a_server(environment: Path, tmp_path: Path) -> None:
    # The command fills a text and a file. The error about Parquet names the missing extra.
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("FILLMASK_", "PYTHON"))}

    def fillmask(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(environment / "bin/fillmask"), *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    text = "The [MASK] barked at the mailman."
    assert "The dog barked at the mailman." in fillmask(text).stdout
    (tmp_path / "texts.txt").write_text(f"{text}\n")
    assert fillmask("--input", "texts.txt", "--output", "fills.jsonl").returncode == 0
    assert '"token_str":"dog"' in (tmp_path / "fills.jsonl").read_text()
    done = fillmask("--input", "texts.txt", "--output", "fills.parquet")
    assert done.returncode == 2
    assert done.stderr.endswith("pip install 'fillmask[parquet]'.\n")


@pytest.mark.parametrize("command", ["fillmask-train", "fillmask-export"])
def test_commands_that_need_torch_say_so(environment: Path, command: str) -> None:
    # The error is one line and names the missing extra.
    done = subprocess.run(
        [environment / "bin" / command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "fillmask[train]" in done.stderr
    assert done.stderr.count("\n") == 1

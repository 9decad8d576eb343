"""Source roots: one package each, and the tests run those of this checkout."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments import ROOT, SOURCE_ROOTS

PACKAGES = {"service": "fillmask", "model": "fillmask_model", "export": "fillmask_export"}


@pytest.mark.parametrize("root", SOURCE_ROOTS, ids=lambda root: root.name)
def test_each_root_holds_one_package(root: Path) -> None:
    # a folder without Python files, such as one of old bytecode, is nobody's package
    found = {path.relative_to(root).parts[0] for path in root.glob("*/**/*.py")}
    assert found == {PACKAGES[root.name]}


@pytest.mark.processes
@pytest.mark.parametrize(("root", "package"), PACKAGES.items())
def test_tests_run_this_checkout(root: str, package: str, tmp_path: Path) -> None:
    # An editable install may belong to another checkout.
    expected = str(ROOT / root / package / "__init__.py")
    assert importlib.import_module(package).__file__ == expected
    started = subprocess.run(
        [sys.executable, "-c", f"import {package}; print({package}.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert started.stdout.strip() == expected

"""Entry points with other packages in place of ours. tests/test_packaging.py runs the commands."""

from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from fillmask.startup import entry_points
from fillmask.startup.entry_points import (
    fillmask,
    fillmask_export,
    fillmask_serve,
    fillmask_train,
)

COMMANDS = {
    "fillmask": (fillmask, "fillmask"),
    "fillmask-serve": (fillmask_serve, "fillmask"),
    "fillmask-export": (fillmask_export, "fillmask_export"),
    "fillmask-train": (fillmask_train, "fillmask_model"),
}


def package_at(place: Path, name: str, content: str | None) -> ModuleSpec:
    """Return the spec of a package, which has no __init__.py if the content is None."""
    spec = ModuleSpec(name, None, origin=str(place / "__init__.py"), is_package=True)
    if content is None:
        spec.origin = None
        spec.submodule_search_locations = [str(place)]
    else:
        (place / "__init__.py").write_text(content)
    return spec


@pytest.mark.parametrize("content", ['__version__ = "0.1.0"\n', "", None])
@pytest.mark.parametrize("command", COMMANDS)
def test_another_package_is_refused(
    command: str,
    content: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, package = COMMANDS[command]
    spec = package_at(tmp_path, package, content)
    monkeypatch.setattr(entry_points, "find_spec", lambda _: spec)
    assert run() == 2
    found = tmp_path if content is None else tmp_path / "__init__.py"
    assert capsys.readouterr().err == (
        f"{command} finds another package named {package} ({found}) in place of its own; remove it "
        "from PYTHONPATH, or install fillmask into an environment of its own.\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_package_is_named(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, package = COMMANDS[command]
    monkeypatch.setattr(entry_points, "find_spec", lambda _: None)
    assert run() == 2
    assert capsys.readouterr() == (
        "",
        f"{command} does not find its package {package}; install fillmask again.\n",
    )


@pytest.mark.parametrize("package", ["fillmask_export", "fillmask_model", "fillmask"])
def test_fillmask_export_checks_three_packages(
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    another = package_at(tmp_path, package, "")
    monkeypatch.setattr(
        entry_points, "find_spec", lambda name: another if name == package else find_spec(name)
    )
    assert fillmask_export() == 2
    assert f"fillmask-export finds another package named {package} (" in capsys.readouterr().err


def test_our_packages_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fillmask.__main__.main", lambda: 7)
    assert fillmask_serve() == 7
    assert capsys.readouterr() == ("", "")

"""Clients whose dependencies conflict with the tests' own, in folders below build/."""

from pathlib import Path

_ROOT = Path(__file__).parents[1]


def python_of(name: str) -> list[str]:
    """Return the command of a Python with the packages of build/kserve or build/clients alone."""
    folder = _ROOT / "build" / name
    assert folder.exists(), f"run: make build/{name}/.installed"
    # -S leaves out the packages of the environment. The folder is of the version of .venv-dev.
    return ["env", f"PYTHONPATH={folder}", str(_ROOT / ".venv-dev" / "bin" / "python"), "-S"]

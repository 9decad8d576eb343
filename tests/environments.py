"""Python environments of clients whose dependencies conflict with the tests' own."""

from pathlib import Path

_ROOT = Path(__file__).parents[1]


def python_of(name: str) -> str:
    """Return the path of the interpreter in the environment kserve or clients."""
    environment = f".venv-{name}"
    path = _ROOT / environment / "bin" / "python"
    assert path.exists(), f"run: make {environment}/.installed"
    return str(path)

"""The Python environment of KServe's client, whose dependencies conflict with the tests' own."""

from pathlib import Path

_PYTHON = Path(__file__).parents[1] / ".venv-kserve" / "bin" / "python"


def kserve_python() -> str:
    """Return the path of the interpreter in the environment of KServe's client."""
    assert _PYTHON.exists(), "run: make .venv-kserve/.installed"
    return str(_PYTHON)

"""Where Python finds packages: in this checkout, and in folders below build/.

Clients whose dependencies conflict with the tests' own have such a folder.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
# the folders of this checkout from which Python imports its packages
SOURCE_ROOTS = [ROOT / name for name in ("service", "model", "export")]


def python_of(name: str) -> list[str]:
    """Return the command of a Python with the packages of build/kserve or build/clients alone."""
    folder = ROOT / "build" / name
    assert folder.exists(), f"run: make build/{name}/.installed"
    # -S leaves out the packages of the environment. The folder is of the version of .venv-dev.
    return ["env", f"PYTHONPATH={folder}", str(ROOT / ".venv-dev" / "bin" / "python"), "-S"]

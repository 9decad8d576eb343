"""Disk usage of fresh virtual environments by kind of installation."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.comparison.workspace import CACHE, ROOT

CONSTRAINTS = ROOT / "constraints" / "comparison.txt"
OURS = "fillmask"
_MINIMAL_APP = ("fastapi", "uvicorn")
# requirements for pip by kind of installation
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    OURS: (str(ROOT),),
    "transformers": (*_MINIMAL_APP, "torch", "transformers"),
    "litserve": ("litserve", "torch", "transformers"),
    "onnxruntime": (*_MINIMAL_APP, "onnxruntime", "tokenizers", "numpy"),
    "ctranslate2": (*_MINIMAL_APP, "ctranslate2", "onnxruntime", "tokenizers", "numpy"),
    "openvino": (*_MINIMAL_APP, "openvino", "tokenizers", "numpy"),
}


def installed_bytes() -> dict[str, int]:
    """Return the installed size in bytes by kind of installation.

    The function always measures fillmask, whose size changes with every commit. A cache contains
    the sizes of the other kinds for the current set of versions.
    """
    cache = CACHE / "installed-bytes.json"
    versions = CONSTRAINTS.read_text()
    kept = json.loads(cache.read_text()) if cache.is_file() else {}
    if kept.get("versions") != versions:
        others = {kind: _install(needed) for kind, needed in REQUIREMENTS.items() if kind != OURS}
        kept = {"versions": versions, "bytes": others}
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps(kept, indent=2))
    return {**kept["bytes"], OURS: _install(REQUIREMENTS[OURS])}


def _install(requirements: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "venv"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip = [str(environment / "bin" / "pip"), "install", "--quiet"]
        pip += ["--disable-pip-version-check", "-c", str(CONSTRAINTS)]
        subprocess.run([*pip, *requirements], cwd=scratch, check=True)
        return sum(f.lstat().st_size for f in environment.rglob("*") if not f.is_symlink())

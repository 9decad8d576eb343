"""Start of the service without telemetry and without files in the home directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.tiny import Tiny

pytestmark = pytest.mark.processes
_OPEN_A_SESSION = """
import sys
from pathlib import Path
{first}
from fillmask.engine.runtime import Runtime
Runtime(Path(sys.argv[1]))
"""


def _files_left_at_home(home: Path, first: str, model_path: Path) -> list[str]:
    home.mkdir()
    # without other variables, because CI=true also disables onnxruntime's telemetry
    variables = {name: os.environ[name] for name in ("PATH", "PYTHONPATH")}
    subprocess.run(
        [sys.executable, "-c", _OPEN_A_SESSION.format(first=first), model_path],
        env=variables | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")},
        check=True,
    )
    return sorted(path.name for path in home.rglob("*") if path.is_file())


def test_a_start_leaves_no_file_at_home(tiny: Tiny, tmp_path: Path) -> None:
    # The telemetry of onnxruntime keeps an id and a database in the home directory.
    assert _files_left_at_home(tmp_path / "home", "", tiny.path / "model.onnx") == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the files lie in other places")
def test_the_check_would_see_telemetry(tiny: Tiny, tmp_path: Path) -> None:
    # The files appear if onnxruntime starts before the service disables telemetry.
    left = _files_left_at_home(tmp_path / "home", "import onnxruntime", tiny.path / "model.onnx")
    assert "deviceid" in left

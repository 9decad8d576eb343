"""Builds fillmask-native and installs it beside the running Python, or into another directory.

    python native/install.py [DIRECTORY]

The compiler is $CXX, clang, or PyPI's ziglang, which contains clang. Without all three it is the
system's C++ compiler. GCC 12 makes a library that is 5 % slower.
"""

import os
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from shutil import which

CONSTRAINTS = str(Path(__file__).parents[1] / "constraints" / "native.txt")


def pip_install(*arguments: str, **variables: str) -> bool:
    """Run pip install with the versions of constraints/native.txt, also for the build."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # older and newer versions of pip read different variables for the build's environment
    versions = {"PIP_CONSTRAINT": CONSTRAINTS, "PIP_BUILD_CONSTRAINT": CONSTRAINTS}
    environment = {**os.environ, **versions, **variables}
    return subprocess.run([*command, *arguments], env=environment, check=False).returncode == 0


def main() -> int:
    """Build with the system's compiler, or else with ziglang, and return the exit code."""
    package = ["--no-deps", "--force-reinstall", "--upgrade", str(Path(__file__).parent)]
    for directory in sys.argv[1:]:
        package += ["--target", directory]
    if "CXX" in os.environ:
        built = pip_install(*package)
    elif which("clang++"):
        built = pip_install(*package, CXX="clang++")
    else:
        zig = find_zig()
        # by itself, zig compiles for this machine's CPU only
        built = zig is not None and pip_install(*package, CXX=f"{zig} c++ -mcpu=baseline")
        built = built or pip_install(*package)
    return 0 if built else 1


def find_zig() -> Path | None:
    """Install ziglang and return its program, because the build does not see the package."""
    if not pip_install("ziglang"):
        return None
    invalidate_caches()
    spec = find_spec("ziglang")
    return None if spec is None or spec.origin is None else Path(spec.origin).with_name("zig")


if __name__ == "__main__":
    sys.exit(main())

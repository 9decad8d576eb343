"""Builds fillmask-native and installs it beside the running Python, or into another directory.

    python native/install.py [DIRECTORY]

A machine without a C++ compiler gets PyPI's ziglang, which contains clang.
"""

import os
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from shutil import which

COMPILERS = ("c++", "g++", "clang++")
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
    if "CXX" in os.environ or any(map(which, COMPILERS)):
        if pip_install(*package):
            return 0
        print("fillmask-native: trying again with ziglang", file=sys.stderr)
    if not pip_install("ziglang"):
        return 1
    invalidate_caches()
    # the build's environment does not see the package, so CMake calls its program
    spec = find_spec("ziglang")
    zig = Path(spec.origin or "").with_name("zig") if spec else "zig"
    return 0 if pip_install(*package, CXX=f"{zig} c++") else 1


if __name__ == "__main__":
    sys.exit(main())

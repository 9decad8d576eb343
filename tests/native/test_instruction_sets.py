"""The kernels of each instruction set, on this CPU and on emulated ARM CPUs.

The program native/tests/instruction_sets.cpp compares them with plain loops.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.native_package import load_native

pytestmark = [pytest.mark.processes, pytest.mark.slow]

NATIVE = Path(__file__).parents[2] / "native"
CMAKE = (NATIVE / "CMakeLists.txt").read_text(encoding="utf-8")
[COMMON_OPTIONS] = re.findall(r"add_compile_options\((.*?)\)", CMAKE, re.DOTALL)
# by source file, without options for the source files of every CPU
OPTIONS: dict[str, str] = dict(
    re.findall(
        r'set_source_files_properties\(src/(\w+)\.cpp PROPERTIES COMPILE_OPTIONS\s+"(.*?)"\)',
        CMAKE,
    )
)
[ARM, ARM_OF_ZIG] = re.findall(r'set\(ARM "(.*?)"\)', CMAKE)
PREFIXES = {"x86_64": "avx", "AMD64": "avx", "aarch64": "neon", "arm64": "neon"}
COMPILERS = ("c++", "g++", "clang++")
ZIG = (sys.executable, "-m", "ziglang", "c++", "-fno-sanitize=all")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiler() -> tuple[str, ...]:
    """Return the command of this machine's compiler."""
    for name in COMPILERS:
        if shutil.which(name):
            return (name, *SANITIZERS)
    if not find_spec("ziglang"):
        pytest.skip("there is neither a C++ compiler nor ziglang")
    return ZIG


def build(command: Sequence[str], machine: str, directory: Path) -> Path:
    """Compile the program with the options of the library."""
    prefix = PREFIXES.get(machine, "none")
    own = [NATIVE / f"src/{name}.cpp" for name in OPTIONS if name.startswith(prefix)]
    every = [NATIVE / "src/portable.cpp", NATIVE / "src/instruction_set.cpp"]
    sources = [NATIVE / "tests/instruction_sets.cpp", *own, *every]
    objects = [directory / f"{source.stem}.o" for source in sources]
    arm = ARM_OF_ZIG if "ziglang" in command else ARM

    def compile_one(source: Path, compiled: Path) -> None:
        own_options = OPTIONS.get(source.stem, "").replace("${ARM}", arm).split(";")
        options = [*COMMON_OPTIONS.split(), *filter(None, own_options)]
        flags = ["-std=c++20", "-O2", "-g", "-Werror", *options]
        subprocess.run([*command, *flags, "-c", str(source), "-o", str(compiled)], check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, sources, objects))
    program = directory / "instruction_sets"
    subprocess.run([*command, *map(str, objects), "-o", str(program)], check=True)
    return program


def run_program(*command: str) -> list[str]:
    """Run the program and return the names of the instruction sets."""
    # leaks cannot be found where processes may not trace others, as in many containers
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def test_instruction_sets_of_this_cpu(tmp_path: Path) -> None:
    program = build(compiler(), platform.machine(), tmp_path)
    names = run_program(str(program))
    assert names[0] == "portable"
    assert load_native().instruction_set() in names


def test_instruction_sets_of_arm(tmp_path: Path) -> None:
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not find_spec("ziglang") or qemu is None:
        pytest.skip("needs ziglang and qemu-aarch64-static")
    command = (*ZIG, "-target", "aarch64-linux-musl")
    program = str(build(command, "aarch64", tmp_path))
    assert run_program(qemu, "-cpu", "max", program) == ["portable", "neon_dotprod", "neon_i8mm"]
    assert run_program(qemu, "-cpu", "cortex-a76", program) == ["portable", "neon_dotprod"]

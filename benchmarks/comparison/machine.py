"""Description of the machine without host names."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

# CPU flags that determine the choice of matrix kernels
FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
PACKAGES = (
    *("onnxruntime", "openvino", "nncf", "ctranslate2", "torch", "transformers"),
    *("fastapi", "uvicorn", "uvloop", "httptools", "tokenizers", "numpy"),
)


def describe(server_cpus: Sequence[int], client_cpus: Sequence[int]) -> list[str]:
    """Describe the machine and the contenders' packages, line by line."""
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return [*hardware(server_cpus, client_cpus), packages]


def hardware(server_cpus: Sequence[int], client_cpus: Sequence[int]) -> list[str]:
    """Describe the machine and who uses its CPUs, line by line."""
    shared = " (shared with the servers)" if set(client_cpus) & set(server_cpus) else ""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    flags = set(_field(cpuinfo, "flags").split())
    memory_kb = int(_field(Path("/proc/meminfo").read_text(), "MemTotal").split()[0])
    load_1_min = os.getloadavg()[0]
    model, family = _field(cpuinfo, "model name"), _field(cpuinfo, "cpu family")
    return [
        f"CPU: {model}, family {family}; {', '.join(flag for flag in FLAGS if flag in flags)}",
        f"CPUs: {len(server_cpus)} for servers, {len(client_cpus)} for the load generator{shared}",
        f"memory: {memory_kb / 2**20:.0f} GiB",
        f"Linux {platform.release()}, Python {platform.python_version()}",
        f"load average over the minute before the start: {load_1_min:.2f}",
    ]


def _field(text: str, name: str) -> str:
    found = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1] if found else "unknown"

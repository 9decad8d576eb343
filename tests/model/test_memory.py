"""Release and reuse of memory, without changes of values."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fillmask_model import memory
from fillmask_model.checkpoints.tensor_files import TensorFiles
from fillmask_model.memory import page_out_files, release_memory

VALUES = 8_000_000  # 32 MB


def mapped_mb() -> float:
    """Return the resident memory of this process in mapped files, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"RssFile:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


@pytest.mark.skipif(sys.platform != "linux", reason="a request to Linux; elsewhere nothing is done")
def test_mapped_weights_leave_memory_and_come_back(tmp_path: Path) -> None:
    # At least 25 of the 32 MB of weights leave memory.
    save_file({"a": torch.arange(VALUES, dtype=torch.float32)}, tmp_path / "model.safetensors")
    tensor = TensorFiles(tmp_path)["a"]
    total = tensor.sum(dtype=torch.float64)
    before_mb = mapped_mb()
    release_memory([tensor])
    assert mapped_mb() < before_mb - 25
    assert tensor.sum(dtype=torch.float64) == total


def test_values_stay_whether_or_not_a_file_has_them(tmp_path: Path) -> None:
    tensor = torch.arange(VALUES, dtype=torch.float32)
    save_file({"a": tensor}, tmp_path / "model.safetensors")
    mapped = TensorFiles(tmp_path)["a"]
    mapped += 1
    release_memory([tensor, tensor[:3], torch.empty(0), mapped])
    assert torch.equal(tensor, torch.arange(VALUES, dtype=torch.float32))
    assert torch.equal(mapped, tensor + 1)


@pytest.mark.skipif(sys.platform != "linux", reason="a request to Linux; elsewhere nothing is done")
def test_files_that_are_read_through_take_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages of other files stay in memory, and so do few pages of the files.
    checks: list[int] = []
    mapped_bytes = memory._mapped_bytes

    def counted() -> int:
        checks.append(found := mapped_bytes())
        return found

    def wait_for_checks(count: int) -> None:
        wanted, deadline = len(checks) + count, time.monotonic() + 10
        while len(checks) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)

    monkeypatch.setattr(memory, "_mapped_bytes", counted)
    save_file({"a": torch.arange(VALUES, dtype=torch.float32)}, tmp_path / "model.safetensors")
    tensor = TensorFiles(tmp_path)["a"]
    release_memory([tensor])
    with page_out_files(".safetensors"):
        wait_for_checks(3)  # the first paging, after the first check, ignores the number of pages
        total = tensor.sum(dtype=torch.float64)
        wait_for_checks(3)
        full_mb = mapped_mb()
    release_memory([tensor])
    assert mapped_mb() < full_mb - 25
    monkeypatch.setattr(memory, "_PAGE_OUT_BYTES", 8 << 20)
    with page_out_files("weights.bin"):
        assert tensor.sum(dtype=torch.float64) == total
        wait_for_checks(3)
        assert mapped_mb() > full_mb - 5
    release_memory([tensor])
    with page_out_files("weights.bin", ".safetensors"):
        assert tensor.sum(dtype=torch.float64) == total
        deadline = time.monotonic() + 10
        while mapped_mb() > full_mb - 25 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert mapped_mb() < full_mb - 25
        assert tensor.sum(dtype=torch.float64) == total
    assert tensor.sum(dtype=torch.float64) == total


def test_an_error_ends_the_paging() -> None:
    threads = threading.active_count()
    with pytest.raises(ValueError, match="inside"), page_out_files("weights.bin"):
        raise ValueError("inside")
    assert threading.active_count() == threads


# ten new blocks of 64 MB, with a write to each page
TEN_BLOCKS = """
import resource
import torch
from fillmask_model.memory import keep_freed_memory

def faults(kept):
    if kept:
        keep_freed_memory()
    for _ in range(5):  # until the heap between blocks is stable
        torch.zeros(16_000_000).add_(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.zeros(16_000_000).add_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(kept=False), faults(kept=True))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the GNU C library's setting")
@pytest.mark.processes
def test_what_is_kept_is_not_asked_of_linux_again() -> None:
    # A block of 64 MB has 15,625 pages, which `keep_freed_memory` reuses for the next block.
    done = subprocess.run(
        [sys.executable, "-c", TEN_BLOCKS], capture_output=True, text=True, check=True
    )
    asked, kept = map(int, done.stdout.split())
    assert kept < asked / 4

"""Memory and throughput of one call of `FillMask.fill` with many texts.

    .venv-dev/bin/python -m benchmarks.load.library [TEXTS]

The texts are short, with one mask each, and get the default of five fills. The call returns all
fills at once, so most of the added memory is theirs. The memory is the peak of the process after
the start of the call, above the memory of the idle model and the texts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fillmask import FillMask

TEXTS = 100_000
_STATUS, _RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main() -> None:
    """Print the memory of the idle model, the peak of the call and the texts per second."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TEXTS
    texts = [f"Number {number} of the list is the [MASK] of it." for number in range(count)]
    with FillMask() as model:
        model.fill(texts[:500])  # allocates what every later call uses again
        idle_mb = memory_mb("VmRSS")
        _RESET_PEAK.write_text("5")
        begun_s = time.perf_counter()
        fills = model.fill(texts)
        seconds = time.perf_counter() - begun_s
        peak_mb = memory_mb("VmHWM")
    print(f"texts: {len(fills)}, texts/s: {len(fills) / seconds:.0f}")
    print(f"idle: {idle_mb:.0f} MB, peak: {peak_mb:.0f} MB, added: {peak_mb - idle_mb:.0f} MB")


def memory_mb(field: str) -> float:
    """Return a field of the process's memory in MB."""
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith(field)]
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main()

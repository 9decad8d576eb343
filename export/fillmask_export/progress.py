"""Progress of an export in int8, as bars on a terminal or as lines in a log."""

from __future__ import annotations

import sys
from typing import Never

from tqdm import tqdm

_BAR = "{desc:<24} {percentage:3.0f} %|{bar}| {elapsed}, {remaining} left"


def stage(name: str, total: int) -> tqdm[Never]:
    """Start a stage and return its bar, which only a terminal shows. A log gets one line.

    Args:
        total: number of steps, each of which calls `update`.
    """
    if not sys.stderr.isatty():
        sys.stderr.write(f"{name}\n")
    return tqdm(desc=name, total=total, bar_format=_BAR, dynamic_ncols=True, disable=None)

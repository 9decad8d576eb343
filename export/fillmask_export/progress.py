"""Progress of an export, as a bar on a terminal or as lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Never, TextIO

from tqdm import tqdm

# function that receives the name of a stage, its finished share from 0 to 1 and the current layer
Report = Callable[[str, float, str], None]

PREDICTION, SMOOTHING = "prediction with PyTorch", "smoothing"
ROUNDING, COMPARISON = "rounding", "comparison"
# shares of the time of an export of BERT-base in int8
_SHARES = {PREDICTION: 0.4, SMOOTHING: 0.4, ROUNDING: 0.13, COMPARISON: 0.07}
_LINE_EVERY_S = 30.0
_BAR = "{desc:<40} {percentage:3.0f} %|{bar}| {elapsed}, {remaining} left"
_LINE = "{desc}: {percentage:.0f} %, {elapsed}, {remaining} left"


def no_report(stage: str, share: float, layer: str = "") -> None:
    """Ignore the progress."""


class ExportProgress:
    """Progress of an export in int8.

    A terminal shows a bar from the first share until `close`. Any other stream gets a line at the
    start of each stage and every 30 seconds. The estimate of the remaining time assumes that each
    stage takes the same share of the time as in an export of BERT-base.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: tqdm[Never] | None = None
        self._started_s = self._shown_s = time.monotonic()
        self._stage = ""

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def report(self, stage: str, share: float, layer: str = "") -> None:
        """Show a stage and its finished share from 0 to 1."""
        before = list(_SHARES).index(stage)
        done = sum(list(_SHARES.values())[:before]) + share * _SHARES[stage]
        description = f"{stage} {layer}".strip()
        if self._stream.isatty():
            if self._bar is None:
                self._bar = tqdm(total=1.0, file=self._stream, bar_format=_BAR, dynamic_ncols=True)
            self._bar.set_description_str(description, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now_s = time.monotonic()
        if stage == self._stage and now_s - self._shown_s < _LINE_EVERY_S:
            return
        self._stage, self._shown_s = stage, now_s
        line = tqdm.format_meter(
            done, 1.0, now_s - self._started_s, prefix=description, bar_format=_LINE
        )
        print(line, file=self._stream, flush=True)

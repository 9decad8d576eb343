"""Record of the epochs of a fine-tuning run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

HISTORY_NAME = "history.jsonl"
NO_EPOCH = "the run has no checkpoint, because it has completed no epoch; start the run again"


def append_history(directory: Path, fields: Mapping[str, float]) -> None:
    """Append the results of an epoch to history.jsonl."""
    with (directory / HISTORY_NAME).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(fields) + "\n")

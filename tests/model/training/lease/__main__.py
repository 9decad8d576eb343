"""Rehearsal of a lease at toy size on the CPU, from text to an answer of the exported model.

    python -m tests.model.training.lease

`make gpu-rehearsal` runs it. The machine is a directory with the files that would travel, in a
process that lacks the packages a borrowed machine may lack. It takes two steps, is lost, and
another machine goes on from what the last step returned. Then the weights are joined, rounded,
exported to int8 and verified. The toy answers nonsense.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.model.training.lease.test_commands import ABSENT
from tests.running_server import ROOT, SOURCE_ROOTS

EVERYDAY = ROOT / "model" / "fillmask_model" / "recipes" / "everyday.txt.xz"
TOKENIZER = ROOT / "service" / "fillmask" / "bundles" / "default" / "tokenizer.json"
DOCUMENTS, HELD_OUT = 3_000, 100
LOAD_MIB = 1.25
SHAPE = {"d_model": 32, "num_layers": 2, "num_heads": 2, "d_ff": 64, "max_positions": 64}
PLAN = {
    "row_tokens": 64,
    "packed_rows": 8,
    "short_tokens": 512,
    "short_lengths": [16, 32, 64],
    "learning_rate": 5e-3,
    "warmup_steps": 5,
    "rewarm_steps": 2,
    "average_decay": 0.5,
    "read_every_steps": 2,
    "evaluation_rows": 32,
}
STEP_S = 10
MISSING = f"""
import sys
for name in {ABSENT}:
    sys.modules[name] = None
from fillmask_model.training.lease.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        _prepare(home)
        train = [sys.executable, "-m", "fillmask_model"]
        files = ["--held-out", "held_out.txt", "--config", "shape.json", "--plan", "plan.json"]
        tokenizer = ["--tokenizer", str(TOKENIZER), "--load-mib", str(LOAD_MIB)]
        _run(home, *train, "lease", "pack", "text.txt", *files, *tokenizer, "--output", "pack")
        _step(home, "first machine", "pack/start", "pack/load_1", after=2 * STEP_S)
        before = _figures(home / "returned" / "metrics.jsonl")[0]
        _step(home, "first machine", "pack/load_2", after=STEP_S)
        _join(home, "--restart", "again")
        shutil.rmtree(home / "first machine")
        _step(home, "second machine", "again", "pack/load_1", after=0)
        _join(home)
        rounding = [
            "--row-tokens",
            "64",
            "--batch-rows",
            "8",
            "--steps",
            "4",
            "--warmup-steps",
            "1",
        ]
        start = ["--held-out", "held_out.txt", "--init", "joined", "--round-weights"]
        _run(home, *train, "pretrain", "text.txt", *start, *rounding, "--output", "rounded")
        export = [sys.executable, "-m", "fillmask_export", "rounded", "--precision", "int8"]
        _run(home, *export, "--output", "bundle", "--name", "rehearsal", "--license", "Apache-2.0")
        _run(
            home,
            sys.executable,
            "-m",
            "fillmask.cli",
            "She drank a cup of [MASK].",
            "--bundle",
            "bundle",
        )
        after = _figures(home / "returned" / "metrics.jsonl")[-1]
    print(f"held-out top 1 of short texts: {before:.1%}, then {after:.1%}")
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if after > before else 1


def _prepare(home: Path) -> None:
    """Write texts, plan and shape."""
    documents = lzma.decompress(EVERYDAY.read_bytes()).decode().split("\n\n")
    parts = {
        "text.txt": documents[HELD_OUT : HELD_OUT + DOCUMENTS],
        "held_out.txt": documents[:HELD_OUT],
    }
    for name, part in parts.items():
        (home / name).write_text("\n\n".join(part) + "\n", encoding="utf-8")
    (home / "shape.json").write_text(json.dumps(SHAPE))
    (home / "plan.json").write_text(json.dumps(PLAN))


def _step(home: Path, machine: str, *carried: str, after: int) -> None:
    """Copy what travels to a machine, run a step there, and copy what returns."""
    tree, returned = home / machine / "tree", home / "returned"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "model" / "fillmask_model", tree / "fillmask_model")
    names = [Path(path).name for path in carried]
    for path, name in zip(carried, names, strict=True):
        shutil.copytree(home / path, tree / name)
    loads = [name for name in names if name.startswith("load")]
    weights = [f"--weights={name}" for name in names if not name.startswith("load")]
    limits = [f"--seconds={STEP_S}", f"--seconds-after={after}", "--margin=2", "--device=cpu"]
    paths = ["--work=../disk", "--output=../returned", "--load", *loads]
    shutil.rmtree(home / machine / "returned", ignore_errors=True)
    _run(tree, sys.executable, "-c", MISSING, "step", *limits, *weights, *paths)
    shutil.rmtree(returned, ignore_errors=True)
    shutil.copytree(home / machine / "returned", returned)


def _join(home: Path, *options: str) -> None:
    join = [sys.executable, "-m", "fillmask_model", "lease", "join", "returned"]
    _run(home, *join, "--pack", "pack", "--output", "joined", *options)


def _figures(log: Path) -> list[float]:
    lines: list[dict[str, Any]] = list(map(json.loads, log.read_text().splitlines()))
    return [line["held_out_short_top_1"] for line in lines if "held_out_short_top_1" in line]


def _run(directory: Path, *command: str) -> None:
    """Run a command, which reads this checkout or the copy in its directory."""
    print("$", *(part if "\n" not in part else "..." for part in command[1:]), flush=True)
    path = ":".join(["."] if directory.name == "tree" else map(str, SOURCE_ROOTS))
    environment = {"PYTHONPATH": path, "PATH": os.defpath, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=directory, check=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())

"""Training in several processes, compared with one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from model.checkpoints.checkpoint import load_checkpoint
from model.training.processes import Processes
from tests.model.samples import metrics_of

ROOT = Path(__file__).parents[3]
SLOW_START_S = 120  # time to import torch on a busy machine
# float32 and a log line per step
PROGRAM = """
import sys
from model.commands import main
from model.training import loop
loop.has_bfloat16 = lambda _: False
loop.LOG_EVERY_STEPS = 1
sys.exit(main(["pretrain", *sys.argv[1:]]))
"""
# uneven parts of batches, short texts, samples of the vocabulary and an average of the weights
OPTIONS = [
    *("--config=encoder.json", "--tokenizer=tokenizer.json", "--device=cpu", "--row-tokens=16"),
    *("--batch-rows=5", "--accumulate-passes=2", "--short-share=0.5", "--average-decay=0.9"),
    *("--sampled-tokens=8", "--frequent-tokens=8", "--learning-rate=1e-2"),
    *("--warmup-steps=5", "--decay-steps=10"),
    *("--evaluate-every-steps=10", "--checkpoint-every-steps=10"),
]


def start(processes: int, *arguments: str) -> subprocess.Popen[str]:
    """Start a run on text.txt with torchrun, or directly for one process."""
    Path("program.py").write_text(PROGRAM)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    launcher = torchrun if processes > 1 else []
    return subprocess.Popen(
        [sys.executable, *launcher, "program.py", "text.txt", *OPTIONS, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(processes: int, *arguments: str) -> str:
    """Run to the end and return the standard output."""
    process = start(processes, *arguments)
    output, errors = process.communicate(timeout=SLOW_START_S)
    assert process.returncode == 0, errors
    return output


def losses_of(directory: str, name: str = "loss") -> dict[float, float]:
    """Return the losses of a run by step."""
    return {line["step"]: line[name] for line in metrics_of(Path(directory)) if name in line}


@pytest.mark.usefixtures("workplace")
def test_the_number_of_processes_changes_a_run_only_by_rounding() -> None:
    # The losses of 50 steps differ by at most 1e-4 nats, also after a resume with one process.
    run(1, "--steps=50", "--output=one")
    output = run(2, "--steps=50", "--until-step=30", "--output=two")
    assert output.count("parameters") == 1  # only process 0 prints
    run(1, "--steps=50", "--resume", "--output=two")
    for name in ("loss", "held_out_loss"):
        one, two = losses_of("one", name), losses_of("two", name)
        assert list(one) == list(two)
        assert one != two  # the parts of a batch add up in another order
        assert list(two.values()) == pytest.approx(list(one.values()), abs=1e-4)
    assert len(losses_of("one")) == 50
    assert losses_of("one")[50] < 0.8 * losses_of("one")[1]


@pytest.mark.usefixtures("workplace")
def test_sigterm_stops_all_processes_with_a_save() -> None:
    # torchrun forwards the signal to its processes, which stop after the same step.
    process = start(2, "--steps=100000", "--output=run")
    log, end = Path("run/metrics.jsonl"), time.monotonic() + SLOW_START_S
    while not (log.exists() and '"step": 10,' in log.read_text()):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=SLOW_START_S)
    last = int(metrics_of(Path("run"))[-1]["step"])
    assert torch.load("run/train_state.pt", weights_only=True)["step"] == last, errors
    load_checkpoint(Path("run"))


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 32])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_parts_of_processes_contain_each_row_once(rows: int, count: int) -> None:
    parts = [Processes(rank, count).part(rows) for rank in range(count)]
    assert [row for part in parts for row in range(rows)[part]] == list(range(rows))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1

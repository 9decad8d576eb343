"""Training in several processes, compared with one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import distributed as dist
from torch import nn

from fillmask_model import optimization
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.commands import main
from fillmask_model.pretraining import loop
from fillmask_model.pretraining.processes import Processes, sum_gradients
from tests.model.samples import metrics_of

SLOW_START_S = 120  # time to import torch on a busy machine
STEPS, STOP_STEP = 50, 30
# float32 and a log line per step. After a log line process 0 sends SIGTERM to torchrun and waits.
PROGRAM = f"""
import os, signal, sys, time
from fillmask_model.commands import main
from fillmask_model import optimization
from fillmask_model.pretraining import loop
append = loop.MetricsLog.append
def append_and_stop(log, *, step, **values):
    append(log, step=step, **values)
    if step == {STOP_STEP}:
        os.kill(os.getppid(), signal.SIGTERM)
    if step >= {STOP_STEP}:
        time.sleep(0.5)
loop.MetricsLog.append = append_and_stop
optimization.has_bfloat16 = lambda _: False
loop.LOG_EVERY_STEPS = 1
sys.exit(main(sys.argv[1:]))
"""
# uneven parts of batches, and short texts
COMMAND = [
    *("pretrain", "text.txt", "--config=encoder.json", "--tokenizer=tokenizer.json"),
    *("--device=cpu", "--row-tokens=16", "--batch-rows=5", "--accumulate-passes=2"),
    "--short-share=0.5",
    *(f"--steps={STEPS}", "--learning-rate=1e-2", "--warmup-steps=5", "--decay-steps=10"),
    *("--evaluate-every-steps=10", "--checkpoint-every-steps=100"),
]


def losses_of(directory: str, name: str = "loss") -> dict[float, float]:
    """Return the losses of a run by step."""
    return {line["step"]: line[name] for line in metrics_of(Path(directory)) if name in line}


@pytest.mark.slow  # two processes of torchrun and three runs of 50 steps
@pytest.mark.processes
@pytest.mark.usefixtures("workplace")
def test_the_number_of_processes_changes_a_run_only_by_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # SIGTERM stops both processes after the same step with a save, and one process resumes the run.
    # The losses of 50 steps differ from those of one process by at most 1e-4 nats.
    Path("program.py").write_text(PROGRAM)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    stopped = subprocess.run(
        [*torchrun, "program.py", *COMMAND, "--output=two"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=SLOW_START_S,
        check=False,
    )
    assert stopped.stdout.count("parameters") == 1  # only process 0 prints
    last = int(metrics_of(Path("two"))[-1]["step"])
    assert STOP_STEP <= last < STEPS, stopped.stderr
    assert torch.load("two/train_state.pt", weights_only=True)["step"] == last
    load_checkpoint(Path("two"))
    monkeypatch.setattr(optimization, "has_bfloat16", lambda _: False)
    monkeypatch.setattr(loop, "LOG_EVERY_STEPS", 1)
    assert main([*COMMAND, "--output=two", "--resume"]) == 0
    assert main([*COMMAND, "--output=one"]) == 0
    for name in ("loss", "held_out_loss"):
        one, two = losses_of("one", name), losses_of("two", name)
        assert list(one) == list(two)
        assert one != two  # the parts of a batch add up in another order
        assert list(two.values()) == pytest.approx(list(one.values()), abs=1e-4)
    assert len(losses_of("one")) == STEPS
    assert losses_of("one")[STEPS] < 0.8 * losses_of("one")[1]


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 32])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_parts_of_processes_contain_each_row_once(rows: int, count: int) -> None:
    parts = [Processes(rank, count).part(rows) for rank in range(count)]
    assert [row for part in parts for row in range(rows)[part]] == list(range(rows))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_an_unused_parameter_has_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a gradient, AdamW changes neither the parameter nor its moments. A parameter that only
    # another process uses has that process's gradient.
    used, elsewhere, unused = (nn.Parameter(torch.ones(2)) for _ in range(3))
    (used * 3).sum().backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
    other_process = iter([torch.tensor([1, 1, 0]), torch.full((2,), 4.0), torch.full((2,), 5.0)])
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: tensor.add_(next(other_process)))
    sum_gradients([used, elsewhere, unused], Processes(0, 2))
    assert used.grad is not None
    assert elsewhere.grad is not None
    assert (used.grad.tolist(), elsewhere.grad.tolist()) == ([7, 7], [5, 5])
    assert unused.grad is None

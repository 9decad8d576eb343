"""Runs that resume after a stop request, a time limit or a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.interruption import StopRequest
from tests.model.command_line import QUICK, pretrain
from tests.model.samples import assert_same_weights, metrics_of

SLOW_START_S = 120  # time to import torch on a busy machine


def test_a_requested_stop_saves_and_ends(pretraining: Any, no_curve: None) -> None:
    # The run stops after step 7, between two checkpoints. The resumed run repeats no step.
    whole, stopped = pretraining(name="whole", steps=15), pretraining(name="stopped", steps=15)
    whole.run()
    stopped.run(stop=lambda: stopped.step == 7)
    assert stopped.step == 7
    assert_same_weights(load_checkpoint(stopped.directory).model, stopped.model)
    resumed = pretraining(name="stopped", weights_seed=9, steps=15)
    resumed.resume()
    assert resumed.step == 7
    resumed.run()
    assert_same_weights(resumed.model, whole.model)


def test_a_time_limit_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit is 1.5 hours.
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limited, unlimited = StopRequest(1.5), StopRequest()
    now[0] += 1.5 * 3600 - 1
    assert not limited()
    now[0] += 1
    assert limited()
    assert not unlimited()


def test_sigterm_in_a_run_also_stops_the_script_around_it() -> None:
    # After the blocks, SIGTERM has its previous handler again.
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as script, StopRequest() as run:
        assert not run()
        os.kill(os.getpid(), signal.SIGTERM)
        assert run()
        assert script()
    assert signal.getsignal(signal.SIGTERM) is before


def test_hours_end_a_run_with_status_0(workplace: Path, no_curve: None) -> None:
    # A limit of zero hours gives one saved step.
    assert pretrain("--output=run", "--hours=0") == 0
    assert metrics_of(Path("run")) == []
    assert pretrain("--output=run", "--resume") == 0
    assert metrics_of(Path("run"))[-1]["step"] == 4


class Training:
    """Process of `fillmask-train pretrain` on text.txt that saves its state at every step."""

    def __init__(self, *arguments: str) -> None:
        command = [
            *(sys.executable, "-m", "fillmask_model", "pretrain", "text.txt", *QUICK),
            *("--config=encoder.json", "--tokenizer=tokenizer.json", "--output=run"),
            *("--steps=100000", "--checkpoint-every-steps=1", "--evaluate-every-steps=100000"),
        ]
        self.process = subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL)

    def wait_for_step(self, step: int) -> None:
        """Wait until the log contains this step."""
        log, end = Path("run/metrics.jsonl"), time.monotonic() + SLOW_START_S
        while time.monotonic() < end and self.process.poll() is None:
            if log.exists() and f'"step": {step}' in log.read_text():
                return
            time.sleep(0.01)
        raise AssertionError(f"step {step} was not reached, status {self.process.poll()}")

    def end(self, number: int) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(SLOW_START_S)


@pytest.mark.slow  # three processes; the tests above stop runs in this one
@pytest.mark.processes
def test_a_stopped_process_loses_nothing_that_was_saved(workplace: Path) -> None:
    # After a kill, the saved state is at most one step behind the log. SIGTERM saves the last step.
    reached = 0
    for number, behind in ((signal.SIGKILL, 1), (signal.SIGKILL, 1), (signal.SIGTERM, 0)):
        training = Training(*(["--resume"] if reached else []))
        training.wait_for_step(reached + 20)
        assert training.end(number) == (0 if number == signal.SIGTERM else -number)
        last = int(metrics_of(Path("run"))[-1]["step"])
        assert last >= reached + 20
        assert torch.load("run/train_state.pt", weights_only=True)["step"] >= last - behind
        load_checkpoint(Path("run"))
        reached = last - last % 10
    steps = [int(line["step"]) for line in metrics_of(Path("run"))]
    assert steps == list(range(10, steps[-1] + 1, 10))

"""One step of a lease: start, train until shortly before its time limit, evaluate and return."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import torch

from fillmask_model.data.masking import Masker
from fillmask_model.files import atomic_replace
from fillmask_model.training.evaluation import evaluate
from fillmask_model.training.interruption import StopRequest
from fillmask_model.training.lease.device_rows import DeviceRows
from fillmask_model.training.lease.loads import PACKED, PackFields, Rows, read_rows
from fillmask_model.training.lease.machine import Machine, newest_start
from fillmask_model.training.lease.plan import learning_rate
from fillmask_model.training.lease.training_step import StepRunner, TrainingStep
from fillmask_model.training.lease.weights import OutputLimits, write_weights
from fillmask_model.training.progress import LOG_NAME, MetricsLog

SAVE_EVERY_S = 100.0  # of training, so that a lost machine costs at most this
MARGIN_S = 5.0  # for the end of the process
_SLOWER = 1.5  # how much longer than the first one a save or the next steps may take


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """What a step of a lease gets.

    Attributes:
        seconds: limit of the whole step, start and end included.
        seconds_after: planned training in the steps after this one. 0 for the last step, whose
            learning rate falls to zero.
        loads: folders of the loads that arrived with the step.
        weights: folder of weights to start from, on a machine without a newer state.
        work: directory of the machine's own disk, which the steps share.
        output: directory for the results.
        device: "cuda" or "cpu".
        limits: limits on the results.
        margin_s: part of `seconds` that the step leaves unused.
    """

    seconds: float
    seconds_after: float = 0.0
    loads: Sequence[Path] = ()
    weights: Path | None = None
    work: Path
    output: Path
    device: str = "cuda"
    limits: OutputLimits = field(default_factory=OutputLimits)
    margin_s: float = MARGIN_S


class Session:
    """Training of one step.

    Args:
        report: function that gets each line of text for the user.
        clock: function that returns the time in seconds.

    Raises:
        ValueError: loads or weights are missing, damaged or of different packs, or the results
            would exceed the limits.
    """

    def __init__(
        self,
        options: StepOptions,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options, self._report, self._clock = options, report, clock
        self._begin = clock()
        self._machine = Machine(options.work)
        self._machine.keep(options.loads)
        loads = self._machine.loads()
        self.fields = PackFields.from_dict(loads[0].fields["pack"])
        plan, device = self.fields.plan, torch.device(options.device)
        # float32 products outside of autocast, if any
        torch.set_float32_matmul_precision("high" if device.type == "cuda" else "highest")
        with ThreadPoolExecutor() as pool:
            rows, held_out = zip(*pool.map(read_rows, loads), strict=True)
        self._held_out: Rows = held_out[0]
        start = newest_start(self._machine.read_state(self.fields), options.weights, self.fields)
        self.progress = start.progress
        options.limits.check(start.model, plan.result_bits)
        self.step = TrainingStep(
            start.model.to(device).train(),
            DeviceRows(rows, self.fields, device),
            self.fields,
            self._autocast,
        )
        if start.state is not None:
            self.step.average.model.load_state_dict(start.state["average"])
            self.step.load_optimizer(start.state["optimizer"])
        names = tuple(load.directory.name for load in loads)
        if names != self.progress.loads:
            self.progress.loads, self.progress.rows_from = names, self.progress.step
        self._runner = StepRunner(self.step.compute, self.step.generator)
        self._log = MetricsLog(options.work, self.progress.step + 1)
        report(f"ready after {clock() - self._begin:.1f} s, at step {self.progress.step}")

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Train until shortly before the limit, and leave state and results.

        The step first evaluates and saves what it starts from. That shows before the training
        whether the results can be written, and how much time to leave for it at the end.

        Args:
            stop: stop condition, such as SIGTERM. If it returns True, the step saves and ends.

        Raises:
            FloatingPointError: the loss is infinite or NaN. State and results of the last save
                stay.
        """
        before = self._clock()
        self._evaluate()
        self._save()
        began = self._clock()
        reserve = _SLOWER * (began - before) + self._options.margin_s
        end = self._begin + self._options.seconds - reserve
        seconds_before = self.progress.seconds
        total = seconds_before + max(0.0, end - began) + self._options.seconds_after
        saved = last = began
        first_step = self.progress.step
        while True:
            now = self._clock()
            self.progress.seconds = seconds_before + now - began
            if stop() or now + _SLOWER * (now - last) >= end:
                break
            if now - saved >= SAVE_EVERY_S:
                self._save()
                saved = self._clock()
            last = self._clock()
            self._train_group(total, now)
        if self.progress.step > first_step:
            self._evaluate()
            self._save()
        self._report(f"done after {self._clock() - self._begin:.1f} s")

    def _train_group(self, total: float, now: float) -> None:
        """Train some steps, and wait for the device once at their end."""
        plan, step, progress = self.fields.plan, self.step, self.progress
        tokens = 0.0
        for _ in range(plan.read_every_steps):
            rate = learning_rate(plan, progress, progress.seconds, total)
            step.rate.fill_(rate)
            length = step.prepare(progress.step, progress.rows_from)
            self._runner.run(length)
            tokens += step.tokens(length)
            progress.step += 1
        progress.tokens += round(tokens)
        loss = float(step.loss_sum) / plan.read_every_steps
        step.loss_sum.zero_()
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss must be finite (got {loss} before step {progress.step}); reduce "
                "learning_rate of the plan, and pack again from the last returned weights"
            )
        seconds = self._clock() - now
        self._log.append(
            step=progress.step,
            tokens=progress.tokens,
            loss=loss,
            learning_rate=rate,
            norm=float(step.norm),
            tokens_per_s=tokens / seconds if seconds else 0.0,
        )

    def _evaluate(self) -> None:
        """Log the accuracy of the averaged weights on held-out packed rows and short texts."""
        model, fields = self.step.average.model, self.fields
        masker = Masker(model.config.vocab_size, fields.mask, fields.special)
        texts = [rows for name, rows in self._held_out.items() if name != PACKED and len(rows)]
        figures: dict[str, float] = {}
        for kind, groups in (("held_out", [self._held_out[PACKED]]), ("held_out_short", texts)):
            if groups:
                with self._autocast():
                    metrics = evaluate(model, groups, masker).metrics()
                self._report(f"step {self.progress.step}, {kind}: {metrics.summary()}")
                figures |= {f"{kind}_{name}": value for name, value in metrics.to_dict().items()}
        self._log.append(step=self.progress.step, tokens=self.progress.tokens, **figures)

    def _save(self) -> None:
        """Write the full state to the machine's disk, and weights and log to the output."""
        step, options = self.step, self._options
        self._machine.write_state(
            {
                "pack": self.fields.pack,
                "progress": self.progress.to_dict(),
                "model": step.model.state_dict(),
                "average": step.average.model.state_dict(),
                "optimizer": step.optimizer.state_dict(),
            }
        )
        write_weights(
            options.output,
            step.average.model,
            self.fields,
            self.progress,
            bits=self.fields.plan.result_bits,
            part_bytes=options.limits.part_bytes,
        )
        with atomic_replace(options.output / LOG_NAME) as temporary:
            temporary.write_bytes(self._log.path.read_bytes())

    def _autocast(self) -> torch.autocast:
        kind = self._options.device
        # the cache of casts could outlive the capture of a graph, and saves nothing here
        return torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda", cache_enabled=False)


def run_step(options: StepOptions, report: Callable[[str], None]) -> None:
    """Run one step of a lease, which SIGTERM ends early.

    Args:
        report: function that gets each line of text for the user.
    """
    with StopRequest() as stop:
        Session(options, report).run(stop)

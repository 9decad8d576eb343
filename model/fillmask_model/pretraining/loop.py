"""Pretraining loop of masked-language modelling on packed rows, pairs and short texts.

Rows, masks and learning rate of a step depend only on text, configuration and number of the step. A
run that resumes without changes therefore computes the same steps as an uninterrupted run. Several
processes compute the same steps as one process, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from torch.nn import functional as F
from tqdm import tqdm

from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.memory import release_memory
from fillmask_model.optimization import adamw, autocast, check_loss, update
from fillmask_model.pretraining.batches import TrainingBatches
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.evaluation import evaluate
from fillmask_model.pretraining.masking import MaskedBatch, Masker
from fillmask_model.pretraining.next_sentence import evaluate_pairs, summed_losses
from fillmask_model.pretraining.processes import Processes, sum_gradients
from fillmask_model.pretraining.progress import (
    NEXT_SENTENCE_ACCURACY,
    NEXT_SENTENCE_LOSS,
    MetricsLog,
    draw_curve,
)
from fillmask_model.pretraining.state import STATE_NAME, read_state, write_state
from fillmask_model.pretraining.texts import TrainingText
from fillmask_model.quantization.rounding import RoundedEncoder
from fillmask_model.quantization.rounding_plan import RoundingPlan
from fillmask_model.tokenizers.special_tokens import SpecialTokens

LOG_EVERY_STEPS = 10
ADAM_BETAS = (0.9, 0.98)  # the values of Liu et al. 2019, section 4
ONE_PROCESS = Processes()


class Pretraining:
    """Resumable pretraining run.

    Args:
        model: encoder to train. The run moves it to the device.
        tokenizer_json: content of tokenizer.json, saved with every checkpoint.
        directory: directory for the checkpoint, train_state.pt, metrics.jsonl and curve.png.
        device: "cpu" or "cuda".
        processes: processes of the run, all of which have the same arguments.

    Raises:
        ValueError: the training rows do not fill a batch, or there are no held-out rows.
    """

    def __init__(
        self,
        *,
        model: TiedEncoder,
        text: TrainingText,
        tokenizer_json: bytes,
        special: SpecialTokens,
        config: TrainConfig,
        directory: Path,
        device: str,
        processes: Processes = ONE_PROCESS,
    ) -> None:
        self.batches = TrainingBatches(text, config)
        if len(text.held_out) == 0:
            raise ValueError(
                f"the held-out text must fill a row of {config.row_tokens} tokens; add text"
            )
        self.model, self.processes = model.to(device), processes
        processes.copy_from_first(self.model.state_dict().values())
        self.text = text
        self.tokenizer_json = tokenizer_json
        self.config, self.directory, self.device = config, directory, torch.device(device)
        self.masker = Masker(model.config.vocab_size, special.mask, special.all, config.select_rate)
        self.evaluation_masker = Masker(model.config.vocab_size, special.mask, special.all)
        self.optimizer = adamw(self.model, config.learning_rate, config.weight_decay, ADAM_BETAS)
        self.rounded: RoundedEncoder | None = None
        self.step = 0
        directory.mkdir(parents=True, exist_ok=True)

    def resume(self) -> None:
        """Continue from the state in the directory.

        Raises:
            ValueError: the state is missing or invalid, or belongs to another run.
        """
        first = self.processes.is_first
        state = self.processes.from_first(read_state(self.directory, self.config) if first else {})
        try:
            self.model.load_state_dict(state["model"])
        except RuntimeError:
            path = self.directory / STATE_NAME
            raise ValueError(
                f"{path} belongs to a run with another encoder; use the --config of that run"
            ) from None
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        if state["rounding"] is not None:
            self.rounded = RoundedEncoder(self.model, RoundingPlan(state["rounding"]))

    def run(self, until_step: int | None = None, stop: Callable[[], bool] = lambda: False) -> None:
        """Train the encoder with evaluations and checkpoints at the configured intervals.

        Args:
            until_step: number of the last step to compute. The default is the last step of the run.
            stop: stop condition, checked after each step. If it returns True, the run saves its
                state and ends.

        Raises:
            FloatingPointError: the loss is infinite or NaN.
        """
        config = self.config
        last = config.steps if until_step is None else min(until_step, config.steps)
        if config.round_weights and self.rounded is None:
            mask, rows = self.masker.mask_token_id, self.batches.rows
            plan = RoundingPlan.from_rows(self.model, rows, mask, config.seed)
            plan = RoundingPlan(self.processes.from_first(plan.factors))
            self.rounded = RoundedEncoder(self.model, plan)
        first = self.processes.is_first
        log = MetricsLog(self.directory, self.step + 1) if first else None
        tokens_per_step = config.batch_rows * config.accumulate_passes * config.row_tokens
        self.model.train()
        with tqdm(
            total=last * tokens_per_step,
            initial=self.step * tokens_per_step,
            unit=" tokens",
            unit_scale=True,
            dynamic_ncols=True,
            disable=not first,
        ) as bar:
            while self.step < last:
                loss = self._train_step()
                self.step += 1
                bar.update(tokens_per_step)
                tokens = self.step * tokens_per_step
                if log and (self.step % LOG_EVERY_STEPS == 0 or self.step == last):
                    bar.set_postfix_str(f"step {self.step}, loss {loss:.3f}")
                    log.append(
                        step=self.step,
                        tokens=tokens,
                        loss=loss,
                        learning_rate=config.learning_rate_at(self.step),
                    )
                if log and (self.step % config.evaluate_every_steps == 0 or self.step == last):
                    self._evaluate(log, tokens, bar.write)
                    # an evaluation fragments the memory, so that every further one would need more
                    release_memory()
                # all processes stop after the same step
                stopped = self.processes.sum(stop(), self.device) > 0
                due = self.step % config.checkpoint_every_steps == 0 or self.step == last
                if first and (due or stopped):
                    self.save()
                if stopped:
                    bar.write(f"stopped at step {self.step}; continue with --resume")
                    break

    def save(self) -> None:
        """Replace the files of the checkpoint and of the training state, each file atomically."""
        plan = self.rounded.plan if self.rounded else None
        save_checkpoint(self.directory, self._published_model(), self.tokenizer_json, plan)
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "rounding": plan.factors if plan else None,
        }
        write_state(self.directory, self.config, state)

    def _train_step(self) -> float:
        config = self.config
        self.optimizer.zero_grad()
        # one generator per step, so that a resumed run draws the same masks
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step)
        first = self.step * config.accumulate_passes
        numbers = range(first, first + config.accumulate_passes)
        batches = [self.batches.batch(number) for number in numbers]
        passes = [self.masker(input_ids, generator) for input_ids, _ in batches]
        # at least 1, so that the loss without selected tokens is 0 instead of 0 / 0
        predicted = max(1, sum(len(masked.labels) for masked in passes))
        classified = sum(len(pairs.labels) for _, pairs in batches if pairs)
        loss_sum = 0.0
        for whole, (_, pairs) in zip(passes, batches, strict=True):
            part = self.processes.part(len(whole.input_ids))
            if part.start == part.stop:
                continue
            masked = whole.rows(part)
            with autocast(self.device):
                # one divisor for all passes, so that every predicted token has the same weight
                if pairs is None:
                    loss = self._summed_loss(masked) / predicted
                else:
                    losses = summed_losses(self.model, masked, pairs.rows(part))
                    loss = losses[0] / predicted + losses[1] / classified
            loss.backward()  # type: ignore[no-untyped-call]  # torch publishes no type for it
            loss_sum += float(loss.detach())
        loss_sum = self.processes.sum(loss_sum, self.device)
        check_loss(loss_sum, self.step + 1)
        sum_gradients(self.model.parameters(), self.processes)
        update(self.optimizer, config.learning_rate_at(self.step + 1), config.clip_norm)
        return loss_sum

    def _summed_loss(self, masked: MaskedBatch) -> torch.Tensor:
        """Return the sum of the cross-entropy over the selected positions, in nats."""
        input_ids, selected = masked.input_ids.to(self.device), masked.selected.to(self.device)
        labels = masked.labels.to(self.device)
        logits = self.rounded.logits if self.rounded else self.model
        return F.cross_entropy(logits(input_ids, selected).float(), labels, reduction="sum")

    def _published_model(self) -> TiedEncoder:
        return self.rounded.rounded_copy() if self.rounded else self.model

    def _evaluate(self, log: MetricsLog, tokens: int, write: Callable[[str], None]) -> None:
        rows = self.text.held_out[: self.config.evaluation_rows]
        with autocast(self.device):
            model = self._published_model()
            figures = evaluate(model, [rows], self.evaluation_masker).metrics()
            held_out_pairs = self.text.held_out_pairs
            pairs = held_out_pairs and evaluate_pairs(
                model, held_out_pairs, self.config.evaluation_rows
            )
        held_out = {f"held_out_{name}": value for name, value in asdict(figures).items()}
        report = f"step {self.step}: {figures.summary()}"
        if pairs:
            held_out |= {NEXT_SENTENCE_ACCURACY: pairs[0], NEXT_SENTENCE_LOSS: pairs[1]}
            report += f", next sentence {100 * pairs[0]:.1f} %"
        log.append(step=self.step, tokens=tokens, **held_out)
        draw_curve(log)
        write(report)

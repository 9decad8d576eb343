"""What the commands for fine-tuning share: options, a start, texts as tokens, and epochs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from fillmask.tables.delimited import Dialect
from fillmask_model.checkpoints.checkpoint import (
    FILES,
    Checkpoint,
    is_own_checkpoint,
    load_checkpoint,
)
from fillmask_model.checkpoints.errors import CheckpointError, prefix_errors
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.fine_tuning.config import FineTuneConfig
from fillmask_model.fine_tuning.loop import Epoch, Objective, fine_tune
from fillmask_model.fine_tuning.report import REPORT_NAMES
from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.fine_tuning.tokens import TokenizedTexts, tokenize
from fillmask_model.hyperparameters import add_flags
from fillmask_model.interruption import StopRequest
from fillmask_model.memory import keep_freed_memory, limit_kernel_cache
from fillmask_model.optimization import add_device_flag, choose_device
from fillmask_model.output_files import reject_foreign_files, reject_inputs
from fillmask_model.tokenizers.special_tokens import check_vocabulary, read_tokenizer

LEAST_TOKENS = 8  # the special tokens of a pair and some words


def add_common_options(parser: argparse.ArgumentParser, config: type[FineTuneConfig]) -> None:
    add = parser.add_argument
    Dialect.add_options(parser)
    add("--init", required=True, type=Path, help="checkpoint of the encoder to fine-tune")
    add("--output", required=True, type=Path, help="directory for the checkpoint")
    limit_help = "maximum length of a text in tokens (default: maximum of the encoder)"
    add("--max-tokens", type=int, help=limit_help)
    long_help = "reaction to a text of more than --max-tokens tokens"
    choices = ("error", "truncate")
    add_default(parser, "--on-long-text", "error", long_help, choices=choices)
    add_device_flag(parser)
    add_flags(parser, config)


def add_default(
    parser: argparse.ArgumentParser, flag: str, default: Any, meaning: str, **options: Any
) -> None:
    help_text = f"{meaning} (default: %(default)s)"
    parser.add_argument(flag, default=default, help=help_text, **options)


def load_start(directory: Path) -> tuple[Checkpoint, Tokenizer]:
    """Load a checkpoint and its tokenizer, with truncation and padding disabled."""
    checkpoint = load_checkpoint(directory)
    if checkpoint.tokenizer_json is None:
        raise CheckpointError(f"{directory} has no tokenizer; add tokenizer.json")
    tokenizer = read_tokenizer(checkpoint.tokenizer_json)
    with prefix_errors(directory):
        check_vocabulary(tokenizer, checkpoint.model.config.vocab_size)
    return checkpoint, tokenizer


def prepare_process(
    options: argparse.Namespace, inputs: list[Path | None], reports: Iterable[str]
) -> None:
    """Choose the device, and reject an output in which the run would replace the user's files."""
    options.device = choose_device(options.device)
    keep_freed_memory()
    limit_kernel_cache()
    names = [*FILES, *reports]
    inputs = [options.data, options.validation, *inputs, *(options.init / one for one in FILES)]
    reject_inputs(inputs, [options.output / name for name in names])
    reject_foreign_files(options.output, names, own=is_own_checkpoint(options.output))


def run(
    objective: Objective[Any],
    config: FineTuneConfig,
    output: Path,
    save: Callable[[list[Epoch]], None],
) -> list[Epoch]:
    """Train, with a call of `save` for the epochs so far after each."""
    epochs: list[Epoch] = []
    output.mkdir(parents=True, exist_ok=True)
    for name in REPORT_NAMES[:2]:  # of an earlier run
        (output / name).unlink(missing_ok=True)

    def add_epoch(epoch: Epoch) -> None:
        epochs.append(epoch)
        # the checkpoint first, because it shows that the other files come from fillmask
        save(epochs)
        epoch.append_to(output)

    with StopRequest() as stop:
        if not fine_tune(objective, config, add_epoch, stop):
            note("SIGTERM has stopped the run")
    if not epochs:
        raise ValueError(
            "the run has no checkpoint, because it has completed no epoch; start the run again"
        )
    return epochs


def tokenize_with(
    options: argparse.Namespace,
    tokenizer: Tokenizer,
    encoder: EncoderConfig,
    *,
    with_spans: bool = False,
) -> Callable[[Dataset], TokenizedTexts]:
    """Return the tokenizer of datasets with the limit of --max-tokens."""
    longest = encoder.max_positions
    max_tokens = longest if options.max_tokens is None else options.max_tokens
    if not LEAST_TOKENS <= max_tokens <= longest:
        raise ValueError(
            f"--max-tokens must be from {LEAST_TOKENS} to {longest}, the maximum of the encoder "
            f"(got {max_tokens})"
        )
    return partial(
        tokenize,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        type_vocab_size=encoder.type_vocab_size,
        truncate=options.on_long_text == "truncate",
        note=note,
        with_spans=with_spans,
    )


def note(text: str) -> None:
    """Print what the user should know, even to a pipe at once."""
    print(text, flush=True)

"""Command for training a sparse encoder."""

from __future__ import annotations

import argparse
from pathlib import Path

from fillmask.tables.delimited import Dialect
from fillmask_model.checkpoints.checkpoint import (
    FILES,
    is_own_checkpoint,
    save_checkpoint,
)
from fillmask_model.checkpoints.errors import prefix_errors
from fillmask_model.checkpoints.modules import MODULES_FILE, write_sparse_modules
from fillmask_model.fine_tuning.config import max_tokens_of
from fillmask_model.fine_tuning.history import HISTORY_NAME, NO_EPOCH, append_history
from fillmask_model.fine_tuning.start import load_start
from fillmask_model.fine_tuning.tokens import ON_LONG_TEXT
from fillmask_model.interruption import StopRequest
from fillmask_model.memory import keep_freed_memory, limit_kernel_cache
from fillmask_model.output_files import reject_foreign_files, reject_inputs
from fillmask_model.sparse.config import SparseConfig
from fillmask_model.sparse.pairs import PairTokens, read_pairs, tokenize_pairs
from fillmask_model.sparse.training import Epoch, SparseTraining


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sparse` to the command line."""
    parser = commands.add_parser("sparse", help=sparse_command.__doc__)
    parser.set_defaults(command=sparse_command)
    parser.add_argument(
        "data", type=Path, help="queries, each with a document (.csv, .tsv, .jsonl, also .gz)"
    )
    Dialect.add_options(parser)
    parser.add_argument(
        "--validation", required=True, type=Path, help="file with the pairs of the validation"
    )
    for name in ("query", "document"):
        parser.add_argument(
            f"--{name}-column", default=name, help=f"column of the {name} (default: %(default)s)"
        )
    parser.add_argument("--init", required=True, type=Path, help="checkpoint of the encoder")
    parser.add_argument("--output", required=True, type=Path, help="directory for the checkpoint")
    parser.add_argument(
        "--max-tokens",
        type=int,
        help="maximum length of a text in tokens (default: maximum of the encoder)",
    )
    parser.add_argument(
        "--on-long-text",
        choices=ON_LONG_TEXT,
        default="error",
        help="reaction to a text of more than --max-tokens tokens (default: %(default)s)",
    )
    SparseConfig.add_options(parser)


def sparse_command(options: argparse.Namespace) -> None:
    """Train an encoder to make sparse vectors for search."""
    keep_freed_memory()
    limit_kernel_cache()
    config = SparseConfig.from_options(options)
    output: Path = options.output
    names = (*FILES, MODULES_FILE, HISTORY_NAME)
    inputs = [options.data, options.validation, *(options.init / name for name in FILES)]
    reject_inputs(inputs, [output / name for name in names])
    reject_foreign_files(output, names, own=is_own_checkpoint(output))
    columns = (options.query_column, options.document_column, Dialect.of(options))
    files = [read_pairs(path, *columns) for path in (options.data, options.validation)]
    checkpoint, tokenizer = load_start(options.init)
    with prefix_errors(options.init):
        checkpoint.require_head()
    model, tokenizer_json = checkpoint.model, tokenizer.to_str().encode()
    model.classifier = None
    parts: list[PairTokens] = []
    for pairs in files:
        tokens, notes = tokenize_pairs(
            pairs,
            tokenizer,
            max_tokens=max_tokens_of(options, model.config.max_positions),
            type_vocab_size=model.config.type_vocab_size,
            on_long_text=options.on_long_text,
        )
        parts.append(tokens)
        for note in notes:
            print(note, flush=True)
    training, validation = parts
    run = SparseTraining(
        model=model, training=training, validation=validation, config=config, device=options.device
    )
    print(f"training pairs: {len(training):,}, validation pairs: {len(validation):,}", flush=True)
    output.mkdir(parents=True, exist_ok=True)
    (output / HISTORY_NAME).unlink(missing_ok=True)  # of an earlier run

    epochs: list[Epoch] = []

    def save(result: Epoch) -> None:
        epochs.append(result)
        save_checkpoint(output, model, tokenizer_json)
        write_sparse_modules(output)
        append_history(output, result.to_dict())

    with StopRequest() as stop:
        if not run.run(save, stop):
            print("SIGTERM has stopped the run", flush=True)
    if not epochs:
        raise ValueError(NO_EPOCH)
    print(f"checkpoint after epoch {epochs[-1].epoch} of {config.epochs}: {output}")

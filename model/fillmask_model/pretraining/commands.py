"""Commands for pretraining an encoder and evaluating it on held-out text."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from fillmask_model.bootstrap import CONFIDENCE, EVALUATION_SEED
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.documents import read_documents, text_files
from fillmask_model.encoder.config import new_encoder_config
from fillmask_model.encoder.empty import count_parameters
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.hyperparameters import add_flags, from_flags
from fillmask_model.interruption import StopRequest
from fillmask_model.memory import keep_freed_memory, limit_kernel_cache
from fillmask_model.optimization import add_device_flag, choose_device
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.evaluation import evaluate
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.masking import Masker
from fillmask_model.pretraining.next_sentence import prepare_encoder
from fillmask_model.pretraining.pairs import pair_types
from fillmask_model.pretraining.processes import Processes
from fillmask_model.pretraining.row_files import load_or_build_arrays
from fillmask_model.pretraining.rows import TokenRows, pack_rows
from fillmask_model.pretraining.short_texts import LONGEST_TOKENS, short_rows
from fillmask_model.pretraining.state import ROWS_NAME, check_output
from fillmask_model.pretraining.texts import (
    TextFiles,
    TrainingText,
    reject_other_texts,
    text_key,
    tokenize,
)
from fillmask_model.tokenizers.special_tokens import (
    SpecialTokens,
    check_vocabulary,
    read_tokenizer,
)
from fillmask_model.tokenizers.word_pieces import DEFAULT_VOCAB_SIZE, train_word_pieces


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    train = commands.add_parser("pretrain", help=pretrain_command.__doc__)
    train.set_defaults(command=pretrain_command)
    train.add_argument(
        "texts", nargs="+", type=Path, help="text files or directories of text files"
    )
    train.add_argument("--output", required=True, type=Path, help="directory for the checkpoint")
    train.add_argument(
        "--held-out", type=Path, help="text to evaluate on (default: 1 %% of the rows)"
    )
    train.add_argument("--init", type=Path, help="checkpoint to start from")
    tokenizer_help = "tokenizer.json (default: the tokenizer of --init, or else a new tokenizer)"
    train.add_argument("--tokenizer", type=Path, help=tokenizer_help)
    vocab_help = f"vocabulary size of a new tokenizer (default: {DEFAULT_VOCAB_SIZE})"
    train.add_argument("--vocab-size", type=int, help=vocab_help)
    train.add_argument("--config", type=Path, help="JSON file with EncoderConfig fields")
    train.add_argument(
        "--resume", action="store_true", help="continue the run in --output with its tokenizer"
    )
    train.add_argument(
        "--until-step", type=int, help="stop after this step (--resume continues the run)"
    )
    hours_help = "save and stop after this many hours, as on SIGTERM (--resume continues the run)"
    train.add_argument("--hours", type=float, help=hours_help)
    add_device_flag(train)
    add_flags(train, TrainConfig)

    score = commands.add_parser("evaluate", help=evaluate_command.__doc__)
    score.set_defaults(command=evaluate_command)
    score.add_argument("checkpoint", type=Path, help="checkpoint to evaluate")
    score.add_argument("--held-out", required=True, type=Path, help="text to evaluate on")
    row_help = "length of packed rows in tokens (default: %(default)s)"
    score.add_argument("--row-tokens", type=int, default=128, help=row_help)
    score.add_argument(
        "--short-texts", action="store_true", help="evaluate on short texts instead of packed rows"
    )


def pretrain_command(options: argparse.Namespace) -> None:
    """Train on plain text, from scratch or from a checkpoint."""
    config = from_flags(TrainConfig, options)
    options.device = choose_device(options.device)
    torch.manual_seed(config.seed)
    keep_freed_memory()
    limit_kernel_cache()
    if options.init and (options.config or options.vocab_size):
        raise ValueError(
            "--config and --vocab-size cannot be used with --init, which sets the sizes of the "
            "encoder; remove --config and --vocab-size"
        )
    with (
        Processes.join(options.device) as processes,
        redirect_stdout(sys.stdout if processes.is_first else None),
    ):
        run = _prepare_run(options, config, processes)
        if options.resume:
            run.resume()
        with StopRequest(options.hours) as stop:
            run.run(options.until_step, stop)


def _prepare_run(
    options: argparse.Namespace, config: TrainConfig, processes: Processes
) -> Pretraining:
    files = text_files(options.texts)
    held_out = text_files([options.held_out]) if options.held_out else []
    output = options.output
    if processes.is_first:
        check_output(options, [*files, *held_out])
    start = load_checkpoint(options.init) if options.init else None
    inherited = start.tokenizer_json if start else None
    # process 0 sends its tokenizer, because a new tokenizer numbers tokens at random
    content = _tokenizer(options, inherited, files).to_str() if processes.is_first else ""
    tokenizer = read_tokenizer(processes.from_first(content).encode())
    special = SpecialTokens.from_tokenizer(tokenizer)
    if start:
        model = start.model
    else:
        size = tokenizer.get_vocab_size()
        model = TiedEncoder(new_encoder_config(options.config, size, config.row_tokens))
    check_vocabulary(tokenizer, model.config.vocab_size)
    if config.next_sentence:
        model = prepare_encoder(model, pair_types(tokenizer))
    print(f"{count_parameters(model.config).tied:,} parameters", flush=True)
    text = processes.in_turn(
        lambda: _text(output / ROWS_NAME, TextFiles(files, held_out), tokenizer, config, options)
    )
    print(text.summary(), flush=True)
    return Pretraining(
        model=model,
        text=text,
        tokenizer_json=tokenizer.to_str().encode(),
        special=special,
        config=config,
        directory=output,
        device=options.device,
        processes=processes,
    )


def evaluate_command(options: argparse.Namespace) -> None:
    """Print held-out metrics of a checkpoint with confidence intervals as JSON."""
    checkpoint = load_checkpoint(options.checkpoint)
    if checkpoint.tokenizer_json is None or checkpoint.head_is_new:
        raise CheckpointError(
            f"{options.checkpoint} must have a tokenizer.json and a masked-language-model head; "
            "train the checkpoint with `fillmask-train pretrain --init`"
        )
    tokenizer = read_tokenizer(checkpoint.tokenizer_json)
    special = SpecialTokens.from_tokenizer(tokenizer)
    files = text_files([options.held_out])
    documents = read_documents(files)
    if options.short_texts:
        longest = min(LONGEST_TOKENS, checkpoint.model.config.max_positions)
        rows = short_rows(documents, tokenizer, special, EVALUATION_SEED, longest)
        groups = list(rows.values())
    else:
        groups = [pack_rows(documents, tokenizer, special, options.row_tokens)]
    masker = Masker(checkpoint.model.config.vocab_size, special.mask, special.all)
    scores = evaluate(checkpoint.model, groups, masker)
    report: dict[str, Any] = {
        **asdict(scores.metrics()),
        "confidence": CONFIDENCE,
        "intervals": scores.intervals(),
    }
    print(json.dumps(report, indent=2))


def _tokenizer(
    options: argparse.Namespace, inherited: bytes | None, files: list[Path]
) -> Tokenizer:
    if options.resume:
        # a newly trained tokenizer could number tokens differently, because training breaks ties
        # randomly
        saved = options.output / "tokenizer.json"
        if not saved.is_file():
            raise ValueError(f"{saved} does not exist; start the run without --resume")
        return read_tokenizer(saved.read_bytes())
    if options.tokenizer:
        return read_tokenizer(options.tokenizer.read_bytes())
    if inherited is not None:
        return read_tokenizer(inherited)
    if options.init:
        raise ValueError(f"{options.init} has no tokenizer; set --tokenizer")
    return train_word_pieces(read_documents(files), options.vocab_size or DEFAULT_VOCAB_SIZE)


def _text(
    path: Path,
    files: TextFiles,
    tokenizer: Tokenizer,
    config: TrainConfig,
    options: argparse.Namespace,
) -> TrainingText:
    def make() -> dict[str, TokenRows]:
        print("tokenizing ...", flush=True)
        return tokenize(files, tokenizer, config)

    key = text_key(files, tokenizer, config)
    if options.resume:
        reject_other_texts(path, key)
    return TrainingText.from_arrays(load_or_build_arrays(path, key, make))

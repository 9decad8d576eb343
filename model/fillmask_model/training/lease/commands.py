"""Commands of a lease: `pack` and `join` at home, and `step` on the machine."""

from __future__ import annotations

import argparse
import hashlib
from functools import partial
from pathlib import Path

import torch

from fillmask_model.checkpoints.checkpoint import (
    FILES,
    is_own_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from fillmask_model.data.corpus import check_vocabulary, read_tokenizer, text_files
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.files import read_object
from fillmask_model.output_files import reject_foreign_files, reject_inputs
from fillmask_model.training.lease.__main__ import add_step
from fillmask_model.training.lease.folders import MIB, Folder
from fillmask_model.training.lease.packing import TOKENIZER, PackOptions, write_pack
from fillmask_model.training.lease.plan import LeasePlan
from fillmask_model.training.lease.weights import (
    START_BITS,
    WEIGHTS,
    read_weights,
    write_weights,
)

_report = partial(print, flush=True)


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `lease` with its own commands to the command line."""
    lease = commands.add_parser("lease", help="train in short steps on a borrowed GPU")
    commands = lease.add_subparsers(required=True)
    _add_pack(commands)
    add_step(commands)
    _add_join(commands)


def _add_pack(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    pack = commands.add_parser("pack", help=pack_command.__doc__)
    pack.set_defaults(command=pack_command)
    pack.add_argument(
        "texts", nargs="+", type=Path, help="text files or directories, documents in random order"
    )
    pack.add_argument("--held-out", required=True, type=Path, help="text to evaluate on")
    pack.add_argument("--output", required=True, type=Path, help="directory for the folders")
    start = pack.add_mutually_exclusive_group(required=True)
    start.add_argument("--init", type=Path, help="checkpoint to start from")
    start.add_argument(
        "--config", type=Path, help="JSON file with EncoderConfig fields of a new encoder"
    )
    tokenizer_help = "tokenizer.json (default: the tokenizer of --init)"
    pack.add_argument("--tokenizer", type=Path, help=tokenizer_help)
    pack.add_argument(
        "--plan", type=Path, help="JSON file with LeasePlan fields (default: all defaults)"
    )
    load_help = "MiB that may travel with a step beside the working tree (default: %(default)s)"
    defaults = PackOptions(files=[], held_out_files=[])
    pack.add_argument("--load-mib", type=float, default=defaults.load_bytes / MIB, help=load_help)
    short_help = "share of the documents for short texts (default: %(default)s)"
    pack.add_argument(
        "--short-documents", type=float, default=defaults.short_documents, help=short_help
    )
    stop_help = "share of the short texts that lose their final full stop (default: %(default)s)"
    pack.add_argument(
        "--stopless-share", type=float, default=defaults.stopless_share, help=stop_help
    )


def _add_join(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    join = commands.add_parser("join", help=join_command.__doc__)
    join.set_defaults(command=join_command)
    join.add_argument("result", type=Path, help="folder that a step returned")
    join.add_argument("--pack", required=True, type=Path, help="directory of `lease pack`")
    join.add_argument("--output", required=True, type=Path, help="directory for the checkpoint")
    restart_help = "also write the weights, small, for --weights of a step on the next machine"
    join.add_argument("--restart", type=Path, help=restart_help)


def pack_command(options: argparse.Namespace) -> None:
    """Pack text, plan and starting weights into folders that fit through a narrow door."""
    plan = LeasePlan.from_dict(read_object(options.plan) if options.plan else {})
    files, held_out = text_files(options.texts), text_files([options.held_out])
    inputs = [*files, *held_out, options.init, options.config, options.tokenizer, options.plan]
    reject_inputs(inputs, [options.output])
    torch.manual_seed(plan.seed)
    model, tokenizer_json = _start(options)
    write_pack(
        options.output,
        model,
        tokenizer_json,
        plan,
        PackOptions(
            files=files,
            held_out_files=held_out,
            load_bytes=round(options.load_mib * MIB),
            short_documents=options.short_documents,
            stopless_share=options.stopless_share,
        ),
        _report,
    )


def join_command(options: argparse.Namespace) -> None:
    """Join the weights that a step returned to a checkpoint."""
    model, fields, progress = read_weights(Folder.open(options.result, WEIGHTS))
    tokenizer = options.pack / TOKENIZER
    if not tokenizer.is_file():
        raise ValueError(f"{tokenizer} does not exist; give the directory of `lease pack`")
    tokenizer_json = tokenizer.read_bytes()
    if hashlib.sha256(tokenizer_json).hexdigest() != fields.tokenizer:
        raise ValueError(
            f"{tokenizer} must be the tokenizer of the weights in {options.result} (got another "
            "SHA-256); give the pack of these weights"
        )
    reject_foreign_files(options.output, FILES, own=is_own_checkpoint(options.output))
    save_checkpoint(options.output, model, tokenizer_json)
    _report(
        f"{options.output}: step {progress.step}, {progress.tokens:,} tokens, "
        f"{progress.seconds:.0f} s of training"
    )
    if options.restart:
        folder = write_weights(options.restart, model, fields, progress, bits=START_BITS)
        _report(f"{options.restart}: {folder.size / MIB:.1f} MiB")


def _start(options: argparse.Namespace) -> tuple[TiedEncoder, bytes]:
    """Return the encoder to start from and its tokenizer.json."""
    checkpoint = load_checkpoint(options.init) if options.init else None
    inherited = checkpoint.tokenizer_json if checkpoint else None
    content = options.tokenizer.read_bytes() if options.tokenizer else inherited
    if content is None:
        raise ValueError("the encoder to start from has no tokenizer; set --tokenizer")
    tokenizer = read_tokenizer(content)
    if checkpoint is None:
        fields = {**read_object(options.config), "vocab_size": tokenizer.get_vocab_size()}
        return TiedEncoder(EncoderConfig.from_dict(fields)), content
    check_vocabulary(tokenizer, checkpoint.model.config.vocab_size)
    return checkpoint.model, content

"""Training and evaluation of encoders from the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import fillmask_model.fine_tuning.commands
import fillmask_model.pretraining.commands
from fillmask_model.checkpoints.checkpoint import read_own_config
from fillmask_model.encoder.counting import count_parameters
from fillmask_model.files import read_object


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"fillmask-train: {error}", file=sys.stderr)
        return 2
    return 0


def parameters_command(options: argparse.Namespace) -> None:
    """Print the number of parameters of a configuration by part."""
    fields = read_object(options.config)
    config, classifier = read_own_config(fields)
    print(count_parameters(config, classifier).table())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fillmask-train", description=__doc__)
    commands = parser.add_subparsers(required=True)
    fillmask_model.pretraining.commands.add_commands(commands)
    fillmask_model.fine_tuning.commands.add_commands(commands)
    count = commands.add_parser("parameters", help=parameters_command.__doc__)
    count.set_defaults(command=parameters_command)
    count.add_argument("config", type=Path, help="config.json of a checkpoint")
    return parser

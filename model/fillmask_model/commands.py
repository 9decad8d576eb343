"""Training and evaluation of encoders from the command line."""

from __future__ import annotations

import argparse
import sys

import fillmask_model.fine_tuning.commands
import fillmask_model.pretraining.commands


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"fillmask-train: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fillmask-train", description=__doc__)
    commands = parser.add_subparsers(required=True)
    fillmask_model.pretraining.commands.add_commands(commands)
    fillmask_model.fine_tuning.commands.add_commands(commands)
    return parser

"""Entry point of a step on a machine that lacks the packages of the other commands."""

from __future__ import annotations

import argparse
import sys

from fillmask_model.training.lease.step_command import add_step


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(prog="fillmask_model.training.lease", description=__doc__)
    add_step(parser.add_subparsers(required=True))
    options = parser.parse_args(arguments)
    try:
        options.command(options)
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"fillmask_model.training.lease: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

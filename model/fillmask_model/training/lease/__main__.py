"""Command of a step, and its entry point on a machine that lacks the packages of the others.

The step needs only PyTorch, NumPy, tokenizers and safetensors.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import torch

from fillmask_model.training.interruption import process_age
from fillmask_model.training.lease.folders import MIB
from fillmask_model.training.lease.session import MARGIN_S, StepOptions, run_step
from fillmask_model.training.lease.weights import OutputLimits


def add_step(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `step` to the command line."""
    step = commands.add_parser("step", help=step_command.__doc__)
    step.set_defaults(command=step_command)
    seconds_help = "limit of the whole step, start and end included"
    step.add_argument("--seconds", required=True, type=float, help=seconds_help)
    after_help = "planned seconds of training in later steps, 0 in the last (default: %(default)s)"
    step.add_argument("--seconds-after", type=float, default=0.0, help=after_help)
    load_help = "loads that arrived with this step"
    step.add_argument("--load", type=Path, nargs="+", default=[], help=load_help)
    weights_help = "start or returned weights, used on a machine without a newer state"
    step.add_argument("--weights", type=Path, help=weights_help)
    work_help = "directory of the machine's own disk, the same in all steps"
    step.add_argument("--work", required=True, type=Path, help=work_help)
    step.add_argument("--output", required=True, type=Path, help="directory that is returned")
    cuda = "cuda" if torch.cuda.is_available() else "cpu"
    device_help = "processor for the training (default: %(default)s)"
    step.add_argument("--device", choices=("cpu", "cuda"), default=cuda, help=device_help)
    limits = OutputLimits()
    part_help = "maximum MiB of a returned file (default: %(default)s)"
    step.add_argument("--part-mib", type=float, default=limits.part_bytes / MIB, help=part_help)
    files_help = "maximum number of returned files (default: %(default)s)"
    step.add_argument("--most-files", type=int, default=limits.files, help=files_help)
    total_help = "maximum MiB of all returned files together (default: %(default)s)"
    step.add_argument("--output-mib", type=float, default=limits.total_bytes / MIB, help=total_help)
    margin_help = "seconds of the limit that stay unused (default: %(default)s)"
    step.add_argument("--margin", type=float, default=MARGIN_S, help=margin_help)


def step_command(options: argparse.Namespace) -> None:
    """Train on the machine for one step, from the newest state that it finds."""
    run_step(
        StepOptions(
            seconds=options.seconds - process_age(),
            seconds_after=options.seconds_after,
            loads=options.load,
            weights=options.weights,
            work=options.work,
            output=options.output,
            device=options.device,
            limits=OutputLimits(
                part_bytes=round(options.part_mib * MIB),
                files=options.most_files,
                total_bytes=round(options.output_mib * MIB),
            ),
            margin_s=options.margin,
        ),
        partial(print, flush=True),
    )


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

"""The recipe of the built-in model, as the commands of `make train-default`."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.running_server import ROOT


def recipe_commands(*variables: str) -> list[list[str]]:
    """Return the arguments of every `fillmask-train` command of `make train-default`.

    Args:
        variables: assignments for make, such as `RUN=directory`.
    """
    environment = os.path.relpath(sys.prefix, ROOT)  # make looks up the starting weights in it
    options = ["--dry-run", "--no-print-directory", f"--old-file={environment}/.installed"]
    printed = subprocess.run(
        ["make", *options, "train-default", f"DEV={environment}", *variables],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # runs the printed lines with a command that prints its arguments, so that the shell expands
    # the loops, the file names and the path of the starting weights
    record = "record() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n"
    lines = [
        line.replace(f"{environment}/bin/fillmask-train ", "record ")
        for line in printed.replace("\\\n", " ").splitlines()
        if "fillmask-train" in line
    ]
    recorded = subprocess.run(
        ["bash", "-c", record + "\n".join(lines)], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    commands: list[list[str]] = [[]]
    for argument in recorded.split("\0")[:-1]:
        if argument == "\n":
            commands.append([])
        else:
            commands[-1].append(argument)
    return commands[:-1]

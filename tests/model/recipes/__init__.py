"""The recipe of the built-in model, as the commands of `make train-default`."""

from __future__ import annotations

import subprocess

from benchmarks.running_server import ROOT


def recipe_commands(*variables: str) -> list[list[str]]:
    """Return the arguments of every `fillmask-train` command of `make train-default`.

    Args:
        variables: assignments for make, such as `RUN=directory`.
    """
    dry_run = ["make", "--dry-run", "--no-print-directory", "--old-file=.venv-dev/.installed"]
    printed = subprocess.run(
        [*dry_run, "train-default", *variables],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # runs the printed lines with a command that prints its arguments, so that the shell expands
    # the loops, the file names and the path of the starting weights
    record = "record() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n"
    lines = [
        line.replace(".venv-dev/bin/fillmask-train ", "record ")
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

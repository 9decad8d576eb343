"""What the contenders have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.workspace import Workspace
from fillmask.tokenization.encoded_text import EncodedText

# number of texts, and function that computes them
Job = tuple[int, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of a contender over HTTP.

    Attributes:
        label: description for docs/performance.md.
        command: command of the server, without its port.
    """

    label: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contender:
    """Row of a table over HTTP.

    Attributes:
        name: label of the row.
        settings: possible settings. A trial selects the fastest one.
        requirements: what pip installs for it.
        exact: whether it computes in fp32 and must agree with transformers on every mask.
        note: description for docs/performance.md.
    """

    name: str
    settings: tuple[Setting, ...]
    requirements: tuple[str, ...] = ()
    exact: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """Row of the table without HTTP.

    Attributes:
        name: label of the row.
        settings: possible settings by label. A trial selects the fastest one. Each creates the
            jobs that compute all texts, with a number of threads.
    """

    name: str
    settings: Mapping[str, Callable[[Sequence[EncodedText], int], list[Job]]]


def runs_by_threads(command: tuple[str, ...], cpus: int) -> tuple[Setting, ...]:
    """Return the settings with one run on all CPUs and with one run per CPU."""
    return tuple(
        Setting(
            split(runs, cpus),
            (*command, "--runs", str(runs), "--threads", str(cpus // runs)),
        )
        for runs in sorted({1, cpus})
    )


def split(runs: int, cpus: int) -> str:
    """Describe a number of runs and the number of threads of each."""
    threads = f"{cpus // runs} thread{'s' if cpus > runs else ''}"
    return f"1 run with {threads}" if runs == 1 else f"{runs} concurrent runs with {threads} each"


def server(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that starts a module of this package."""
    return (sys.executable, "-m", f"benchmarks.comparison.contenders.{name}", *arguments)


def session(workspace: Workspace, engine: str, graph: Path) -> tuple[str, ...]:
    """Return the command that serves a graph, or the encoder of CTranslate2, in a runtime."""
    arguments = ("--engine", engine, "--graph", str(graph))
    return server("session", "--size", workspace.size, *arguments)

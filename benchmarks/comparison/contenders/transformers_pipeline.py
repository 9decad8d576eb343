"""transformers' fill-mask pipeline behind FastAPI, with a thread pool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.comparison.contenders.app import APP, serve
from benchmarks.comparison.contenders.contender import Contender, Setting, runs_by_threads, server
from benchmarks.comparison.workspace import Workspace

NAME = "transformers pipeline"


def busy(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return its row."""
    return [
        Contender(
            name=NAME,
            settings=runs_by_threads(_command(workspace), cpus),
            requirements=(*APP, "torch", "transformers"),
            exact=True,
            note="The fill-mask pipeline. transformers' guides advise one run at a time with all "
            "threads, and one text per run on CPUs.",
        )
    ]


def alone(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return its row with all threads for each text."""
    command = (*_command(workspace), "--runs", "1", "--threads", str(cpus))
    return [Contender(NAME, (Setting("all threads", command),))]


def _command(workspace: Workspace) -> tuple[str, ...]:
    return server("transformers_pipeline", "--checkpoint", str(workspace.checkpoint))


def main() -> None:
    """Load the checkpoint and serve it."""
    # imported here, because the comparison itself needs neither
    import torch  # noqa: PLC0415
    from transformers import pipeline  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--runs", required=True, type=int)
    parser.add_argument("--threads", required=True, type=int, help="number of threads per run")
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = pipeline("fill-mask", model=str(options.checkpoint), device="cpu")

    def answer(text: str, top_k: int) -> Any:
        return run(text, top_k=top_k)

    serve(answer, runs=options.runs, port=options.port)


if __name__ == "__main__":
    main()

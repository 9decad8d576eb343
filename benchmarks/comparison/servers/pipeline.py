"""FastAPI application with a thread pool for one of transformers' pipelines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from transformers import pipeline

from benchmarks.comparison.servers.minimal_app import serve

PATHS = {"fill-mask": "/fill-mask", "text-classification": "/classify"}


def main() -> None:
    """Load the checkpoint and serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--task", choices=PATHS, default="fill-mask")
    parser.add_argument("--runs", required=True, type=int)
    parser.add_argument("--threads", required=True, type=int, help="number of threads per run")
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = pipeline(options.task, model=str(options.checkpoint), device="cpu")

    def answer(text: str, top_k: int) -> Any:
        return run(text, top_k=top_k)

    serve(answer, runs=options.runs, port=options.port, path=PATHS[options.task])


if __name__ == "__main__":
    main()

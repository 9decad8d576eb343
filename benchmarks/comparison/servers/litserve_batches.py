"""LitServe around transformers' pipeline, with LitServe's own batching."""

# no `from __future__ import annotations`: LitServe makes its endpoint of them at run time

import argparse
from collections.abc import Sequence
from typing import Any

import litserve  # type: ignore[import-not-found] # only the environment of `make comparison` has it
import torch
from transformers import pipeline

from benchmarks.comparison.process import HOST
from benchmarks.comparison.texts import TOP_K

# how long the first request of a batch waits for company
BATCH_TIMEOUT_S = 0.005


class FillMaskApi(litserve.LitAPI):  # type: ignore[misc] # the base class is untyped
    """The four steps LitServe asks for; each worker is a process with its own pipeline."""

    def __init__(self, checkpoint: str, threads: int, max_batch_size: int) -> None:
        super().__init__(
            max_batch_size=max_batch_size, batch_timeout=BATCH_TIMEOUT_S, api_path="/fill-mask"
        )
        self._checkpoint = checkpoint
        self._threads = threads

    def setup(self, device: str) -> None:
        """Load the model in the worker."""
        torch.set_num_threads(self._threads)
        self._fill_mask = pipeline("fill-mask", model=self._checkpoint, device=device)

    def decode_request(self, request: dict[str, Any]) -> str:
        """Body to text; every body of the comparison asks for as many fills."""
        text: str = request["inputs"]
        return text

    def predict(self, texts: Sequence[str]) -> Any:
        """A batch of texts in one padded run."""
        answers = self._fill_mask(list(texts), top_k=TOP_K, batch_size=len(texts))
        # the pipeline does not nest the answer to a single text
        return [answers] if len(texts) == 1 else answers

    def encode_response(self, output: Any) -> Any:
        """The answer is the body."""
        return output


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--workers", required=True, type=int)
    parser.add_argument("--threads", required=True, type=int, help="of each worker")
    parser.add_argument("--max-batch-size", required=True, type=int)
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    api = FillMaskApi(options.checkpoint, options.threads, options.max_batch_size)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=options.workers)
    server.run(host=HOST, port=options.port, generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main()

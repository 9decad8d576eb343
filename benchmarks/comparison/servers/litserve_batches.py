"""Server of transformers' pipeline in LitServe, with LitServe's batching."""

# no `from __future__ import annotations`, because LitServe reads the annotations at run time

import argparse
from collections.abc import Sequence
from typing import Any

import litserve  # type: ignore[import-not-found] # in the environment of `make comparison` only
import torch
from transformers import pipeline

from benchmarks.comparison.process import HOST
from benchmarks.comparison.texts import TOP_K

BATCH_TIMEOUT_S = 0.005  # maximum wait of a batch for more requests


class FillMaskApi(litserve.LitAPI):  # type: ignore[misc] # the base class is untyped
    """Fill-mask API for LitServe.

    Each worker is a process with its own pipeline.
    """

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
        """Return the text of a body.

        The method ignores top_k, because all bodies of the comparison have the same top_k.
        """
        text: str = request["inputs"]
        return text

    def predict(self, texts: Sequence[str]) -> Any:
        """Fill a batch of texts in one padded run."""
        answers = self._fill_mask(list(texts), top_k=TOP_K, batch_size=len(texts))
        # the pipeline returns the fills of a single text without an outer list
        return [answers] if len(texts) == 1 else answers

    def encode_response(self, output: Any) -> Any:
        """Return the fills, which are the body of the response."""
        return output


def main() -> None:
    """Run the server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--workers", required=True, type=int)
    parser.add_argument("--threads", required=True, type=int, help="number of threads per worker")
    parser.add_argument("--max-batch-size", required=True, type=int)
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    api = FillMaskApi(options.checkpoint, options.threads, options.max_batch_size)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=options.workers)
    server.run(host=HOST, port=options.port, generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main()

"""FastAPI application that reranks with transformers, as a user would write it.

python -m benchmarks.tasks.rerank_server CHECKPOINT --port PORT
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class Body(BaseModel):
    """A query with its texts."""

    query: str
    texts: list[str]


def main() -> None:
    """Serve until SIGTERM, with one run at a time on all CPUs."""
    checkpoint, _, port = sys.argv[1:]
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    app, one_run = FastAPI(), threading.Lock()

    @app.post("/rerank")
    def rerank(body: Body) -> list[dict[str, Any]]:
        encoded = tokenizer(
            [body.query] * len(body.texts),
            body.texts,
            padding=True,
            truncation=True,
            return_tensors="pt",
            return_token_type_ids=True,
        )
        with one_run, torch.inference_mode():
            scores = model(**encoded).logits[:, 0].sigmoid().tolist()
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [{"index": index, "score": scores[index]} for index in order]

    @app.get("/health/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)


if __name__ == "__main__":
    main()

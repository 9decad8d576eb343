"""Minimal FastAPI application for a function of a text, similar to a user's own server.

A thread pool computes the requests with one text per run. Requests and responses have Hugging
Face's format, which fillmask also uses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from benchmarks.comparison.process import HOST

# what pip installs for it
APP = ("fastapi", "uvicorn")
Answer = Callable[[str, int], Any]


class Parameters(BaseModel):
    """Parameters of a request."""

    top_k: int = 5


class Body(BaseModel):
    """Body of a request with one text."""

    inputs: str
    parameters: Parameters = Parameters()


def serve(
    answer: Answer,
    *,
    runs: int,
    port: int,
) -> None:
    """Serve a function until SIGTERM.

    Args:
        answer: function of a text and top_k that returns the body of the response. Several threads
            call the function concurrently.
        runs: number of concurrent runs.
        port: port on this machine.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = runs
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/fill-mask")
    def endpoint(body: Body) -> JSONResponse:
        return JSONResponse(answer(body.inputs, body.parameters.top_k))

    @app.get("/health/ready")
    async def ready() -> dict[str, str]:
        return {"status": "ready"}

    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False)

"""The smallest FastAPI application around a fill-mask function: what a user would write.

Requests are computed in a thread pool of a given size, one text a run. It answers ours' and
Hugging Face's wire format.
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

Fill = Callable[[str, int], Any]


class Parameters(BaseModel):
    """How many fills a mask."""

    top_k: int = 5


class Body(BaseModel):
    """One text."""

    inputs: str
    parameters: Parameters = Parameters()


def serve(fill: Fill, *, runs: int, port: int) -> None:
    """Serve until told to stop.

    Args:
        fill: text and top_k in, Hugging Face's fills out; called by threads.
        runs: how many are computed at the same time.
        port: to listen on, on this machine only.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = runs
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/fill-mask")
    def fill_mask(body: Body) -> JSONResponse:
        return JSONResponse(fill(body.inputs, body.parameters.top_k))

    @app.get("/health/ready")
    async def ready() -> dict[str, str]:
        return {"status": "ready"}

    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False)

"""Small FastAPI application on an unchanged uvicorn, to measure its HTTP parsers under attack.

.venv-dev/bin/python -m benchmarks.load.stock_server --port=0 [--rcvbuf=BYTES] [--loop=asyncio]
"""

from __future__ import annotations

import argparse
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PUBLIC = "/health/live"


class KeyCheck:
    """Middleware that answers 401 and closes the connection before it reads the body."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._value = b"Bearer " + key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key of one request."""
        if scope["path"] == PUBLIC or (b"authorization", self._value) in scope["headers"]:
            await self._app(scope, receive, send)
            return
        answer = JSONResponse({"error": "no key"}, 401, {"Connection": "close"})
        await answer(scope, receive, send)


def application(key: str) -> FastAPI:
    """Return the application, which accepts one key."""
    app = FastAPI()
    app.add_middleware(KeyCheck, key=key)

    @app.get(PUBLIC)
    async def live() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/fill-mask")
    async def fill(body: dict[str, Any]) -> dict[str, Any]:
        return body

    return app


def main(arguments: list[str] | None = None) -> None:
    """Serve until a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", required=True)
    parser.add_argument("--loop", default="uvloop", choices=("uvloop", "asyncio"))
    parser.add_argument("--http", default="h11", choices=("h11", "httptools"))
    parser.add_argument("--rcvbuf", type=int, default=0, help="SO_RCVBUF, 0 for the default")
    options = parser.parse_args(arguments)
    config = uvicorn.Config(
        application(options.key),
        http=options.http,
        loop=options.loop,
        log_level="critical",
        access_log=False,
        ws="none",
    )
    # names its protocol, because asyncio disables Nagle's algorithm only then
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.rcvbuf:  # accepted connections inherit the size
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.rcvbuf)
        listener.bind(("127.0.0.1", options.port))
        listener.listen(2048)
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()

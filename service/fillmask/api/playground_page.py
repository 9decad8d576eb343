"""The playground at GET /, a page to try the model."""

from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.types import Scope

from fillmask.api.static_files import Files

_DIRECTORY = Path(__file__).parents[1] / "playground"
_SOURCES = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {source}" for name, source in _SOURCES.items()),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # File names have no version. Browsers therefore revalidate each file and mostly receive 304.
    "Cache-Control": "no-cache",
}

# the body that KServe's V1 client expects from a live server at this path
_ALIVE = {"status": "alive"}
_ALIVE_SCHEMA = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string", "const": "alive"}},
}


class _Files(Files):
    """Static files with headers that forbid content from other hosts."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


def add_playground_page(app: FastAPI) -> None:
    """Serve the page at / and its files at /playground.

    All addresses in the page are relative, so that the page works behind a proxy with any path
    prefix.
    """
    files = _Files(directory=_DIRECTORY)

    @app.get(
        "/",
        summary="The playground, or the state of the process",
        description="A client that accepts text/html gets the page. Any other client gets JSON.",
        tags=["Service"],
        responses={
            200: {
                "content": {
                    "application/json": {"schema": _ALIVE_SCHEMA},
                    "text/html": {"schema": {"type": "string"}},
                }
            }
        },
    )
    async def playground(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            response = await files.get_response("index.html", request.scope)
        else:
            response = JSONResponse(_ALIVE, headers=_HEADERS)
        response.headers["Vary"] = "Accept"
        return response

    app.mount("/playground", files, name="playground")

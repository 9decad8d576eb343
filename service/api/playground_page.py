"""The playground at GET /, a page to try the model."""

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

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


class _Files(StaticFiles):
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
    router = APIRouter()
    files = _Files(directory=_DIRECTORY)

    @router.get("/", summary="The playground", tags=["Service"], response_class=HTMLResponse)
    async def playground(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    app.include_router(router)
    app.mount("/playground", files, name="playground")

"""The pages for browsers: OpenAPI at /docs, and the playground at GET /.

Browsers load all files of the pages from this server.
"""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from fillmask.middleware.transfer import PART_BYTES


class Files(StaticFiles):
    """Static files in small parts, because each slow client holds one."""

    def file_response(self, *args: Any, **keywords: Any) -> Response:
        response = super().file_response(*args, **keywords)
        if isinstance(response, FileResponse):
            response.chunk_size = PART_BYTES
        return response


_ASSETS_PATH = "/docs-assets"


def add_docs_page(app: FastAPI) -> None:
    """Serve Swagger UI from the files of the package fastapi-swagger.

    All addresses in the page are relative, so that the page works behind a proxy with any path
    prefix.
    """
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=f"{app.title} {app.version}",
        swagger_js_url=f".{_ASSETS_PATH}/swagger-ui-bundle.js",
        swagger_css_url=f".{_ASSETS_PATH}/swagger-ui.css",
        swagger_favicon_url=f".{_ASSETS_PATH}/favicon-32x32.png",
    )
    page.headers["Content-Security-Policy"] = _policy(bytes(page.body))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return page

    assets = Files(packages=[("fastapi_swagger", "resources")])
    app.mount(_ASSETS_PATH, assets, name="docs-assets")


def _policy(page: bytes) -> str:
    """Return a Content-Security-Policy that forbids content from other servers."""
    scripts = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
    allowed = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


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

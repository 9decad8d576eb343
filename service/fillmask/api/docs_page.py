"""The OpenAPI page at /docs. Browsers load all files of the page from this server."""

import base64
import hashlib
import re

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse

from fillmask.api.static_files import Files

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

"""The headers of a request, as ASGI has them."""

from starlette.types import Scope


def header(scope: Scope, name: bytes) -> str | None:
    """The first of a name, which is in lower case; None where there is none."""
    for known, value in scope["headers"]:
        if known == name:
            return bytes(value).decode("latin-1")
    return None

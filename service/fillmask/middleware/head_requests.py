"""ASGI middleware that supports HEAD for every GET route (RFC 9110, 9.3.2)."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadMiddleware:
    """Middleware that handles HEAD requests as GET requests and omits the response bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # a copy, because the server also reads the method and sends no body for HEAD
        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send_without_body)
        finally:
            scope.update({**as_get, "method": "HEAD"})  # keeps the values that routing has added

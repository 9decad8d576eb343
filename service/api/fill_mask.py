"""POST /fill-mask as a plain ASGI application, which avoids FastAPI's overhead."""

import asyncio

from starlette.types import Receive, Scope, Send

from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.fill_response import fills_to_json
from service.errors import FillMaskError
from service.http.disconnect import CancelOnDisconnect, ClientDisconnectedError
from service.http.middleware.request_memory import LONG_BODY_BYTES
from service.http.send_json import send_error, send_json
from service.observability.request_context import MODEL, RESERVE
from service.registry.registry import ModelRegistry
from service.registry.served_model import ServedModel
from service.tasks.response_size import Reserve


class FillMaskEndpoint:
    """An ASGI endpoint that parses a request, fills its masks and sends the response.

    Args:
        models: registry of the served models.
        name: name of the endpoint's model. None selects the default model.
    """

    def __init__(self, models: ModelRegistry, name: str | None) -> None:
        self._models = models
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, whose body RequestMemoryMiddleware delivers in one message."""
        body: bytes = (await receive())["body"]
        try:
            served = self._models.get(self._name, "fill-mask")
            scope[MODEL] = served.info.name
            with served.in_use, CancelOnDisconnect(receive):
                reserve = scope[RESERVE]
                content = await _fill(served, body, _content_type(scope), reserve)
        except ClientDisconnectedError:
            return
        except FillMaskError as error:
            await send_error(send, error)
            return
        await send_json(send, 200, content)


async def _fill(
    served: ServedModel, body: bytes, content_type: str | None, reserve: Reserve
) -> bytes:
    served.batcher.raise_if_overloaded()
    limits = served.info.limits
    if len(body) < LONG_BODY_BYTES:
        request = FillMaskRequest.read(body, content_type, limits)
    else:
        request = await asyncio.to_thread(FillMaskRequest.read, body, content_type, limits)
    result = await served.require_fill_mask().fill(
        request.texts, request.options, report_errors=request.report_errors, reserve=reserve
    )
    if result.is_large:
        return await asyncio.to_thread(fills_to_json, result, single=request.single)
    return fills_to_json(result, single=request.single)


def _content_type(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return bytes(value).decode("latin-1")
    return None

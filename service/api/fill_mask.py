"""POST /fill-mask as a bare ASGI application: the request that counts, by the shortest way."""

import asyncio

from starlette.types import Receive, Scope, Send

from service.api.fill_request import FillMaskRequest
from service.api.fill_response import fills_to_json
from service.errors import FillMaskError
from service.http.disconnect import CancelOnDisconnect, ClientDisconnectedError
from service.http.middleware.request_memory import LONG_BODY_BYTES
from service.http.responses import header, send_error, send_json
from service.observability.request_context import MODEL, RESERVE
from service.registry.registry import ModelRegistry
from service.registry.served_model import ServedModel
from service.tasks.response_size import Reserve


class FillMaskEndpoint:
    """Reads a request, has it filled, and answers. No logic.

    Args:
        models: those that are served.
        name: of the one that answers here; None for the default.
    """

    def __init__(self, models: ModelRegistry, name: str | None) -> None:
        self._models = models
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, whose body comes in one message."""
        body: bytes = (await receive())["body"]
        try:
            served = self._models.get(self._name)
            scope[MODEL] = served.info.name
            with served.in_use, CancelOnDisconnect(receive):
                reserve = scope[RESERVE]
                content = await _answer(served, body, header(scope, b"content-type"), reserve)
        except ClientDisconnectedError:
            return
        except FillMaskError as error:
            await send_error(send, error)
            return
        await send_json(send, 200, content)


async def _answer(
    served: ServedModel, body: bytes, content_type: str | None, reserve: Reserve
) -> bytes:
    served.batcher.raise_if_overloaded()
    limits = served.info.limits
    if len(body) < LONG_BODY_BYTES:
        request = FillMaskRequest.read(body, content_type, limits)
    else:
        request = await asyncio.to_thread(FillMaskRequest.read, body, content_type, limits)
    answer = await served.fill_mask.fill(
        request.texts, request.options, report_errors=request.report, reserve=reserve
    )
    if answer.is_large:
        return await asyncio.to_thread(fills_to_json, answer, single=request.single)
    return fills_to_json(answer, single=request.single)

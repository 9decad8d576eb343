"""Endpoints of tasks as plain ASGI applications, without the overhead of FastAPI."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.types import Receive, Scope, Send

from fillmask.api.bodies.classify import ClassifyRequest
from fillmask.api.bodies.fill_request import FillMaskRequest
from fillmask.api.bodies.request_body import TextsRequest
from fillmask.bundles.description import Task
from fillmask.errors import FillMaskError
from fillmask.http.disconnect import CancelOnDisconnect, ClientDisconnectedError
from fillmask.http.middleware.request_memory import LONG_BODY_BYTES
from fillmask.http.send_json import send_error, send_json
from fillmask.observability.request_context import MODEL, RESERVE
from fillmask.registry.registry import ModelRegistry
from fillmask.registry.served_model import ServedModel
from fillmask.results.fills import fills_to_json
from fillmask.results.labels import labels_to_json
from fillmask.tasks.response_size import Reserve

# function that returns the response body for a request body with its content type
Respond = Callable[[ServedModel, bytes, str | None, Reserve], Awaitable[bytes]]

_Request = TypeVar("_Request", bound=TextsRequest)


class TaskEndpoint:
    """An ASGI endpoint that runs a task on the texts of a request and sends the response.

    Args:
        name: name of the endpoint's model. None selects the default model of the task.
        task: task that the model must have.
        respond: function that reads the request, runs the task and returns the response body.
    """

    def __init__(
        self, models: ModelRegistry, name: str | None, task: Task, respond: Respond
    ) -> None:
        self._models = models
        self._name = name
        self._task = task
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, whose body RequestMemoryMiddleware delivers in one message."""
        body: bytes = (await receive())["body"]
        try:
            served = self._models.get(self._name, self._task)
            scope[MODEL] = served.info.name
            with served.in_use, CancelOnDisconnect(receive):
                served.batcher.raise_if_overloaded()
                content = await self._respond(served, body, _content_type(scope), scope[RESERVE])
        except ClientDisconnectedError:
            return
        except FillMaskError as error:
            await send_error(send, error)
            return
        await send_json(send, 200, content)


async def fill_masks(
    served: ServedModel, body: bytes, content_type: str | None, reserve: Reserve
) -> bytes:
    """Return the response body of /fill-mask.

    Raises:
        FillMaskError: the request is invalid, the service is overloaded or stopping, or the model
            has failed.
    """
    request = await _read_request(FillMaskRequest, served, body, content_type)
    result = await served.require_fill_mask().fill(
        request.texts, request.options, report_errors=request.report_errors, reserve=reserve
    )
    if result.is_large:
        return await asyncio.to_thread(fills_to_json, result, single=request.single)
    return fills_to_json(result, single=request.single)


async def classify(
    served: ServedModel, body: bytes, content_type: str | None, reserve: Reserve
) -> bytes:
    """Return the response body of /classify.

    Raises:
        FillMaskError: the request is invalid, the service is overloaded or stopping, or the model
            has failed.
    """
    request = await _read_request(ClassifyRequest, served, body, content_type)
    result = await served.require_classification().classify(
        request.texts, request.options, report_errors=request.report_errors, reserve=reserve
    )
    if result.is_large:
        return await asyncio.to_thread(labels_to_json, result.labels, single=request.single)
    return labels_to_json(result.labels, single=request.single)


async def _read_request(
    request_type: type[_Request], served: ServedModel, body: bytes, content_type: str | None
) -> _Request:
    """Parse and check a request, on another thread if the body is long.

    Raises:
        FillMaskError: the request is invalid.
    """
    limits = served.info.limits
    if len(body) < LONG_BODY_BYTES:
        return request_type.read(body, content_type, limits)
    return await asyncio.to_thread(request_type.read, body, content_type, limits)


def _content_type(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return bytes(value).decode("latin-1")
    return None

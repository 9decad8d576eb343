"""Responses to fill-mask requests."""

import asyncio

from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.fill_response import fills_to_json
from service.api.task_endpoint import read_request
from service.registry.served_model import ServedModel
from service.tasks.response_size import Reserve


async def fill_masks(
    served: ServedModel, body: bytes, content_type: str | None, reserve: Reserve
) -> bytes:
    """Return the response body of /fill-mask.

    Raises:
        FillMaskError: the request is invalid, or the service is overloaded.
    """
    request = await read_request(FillMaskRequest, served, body, content_type)
    result = await served.require_fill_mask().fill(
        request.texts, request.options, report_errors=request.report_errors, reserve=reserve
    )
    if result.is_large:
        return await asyncio.to_thread(fills_to_json, result, single=request.single)
    return fills_to_json(result, single=request.single)

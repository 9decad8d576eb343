"""Responses to classification requests."""

import asyncio

from service.api.bodies.classify import ClassifyRequest, labels_to_json
from service.api.task_endpoint import read_request
from service.registry.served_model import ServedModel
from service.tasks.response_size import Reserve


async def classify(
    served: ServedModel, body: bytes, content_type: str | None, reserve: Reserve
) -> bytes:
    """Return the response body of /classify.

    Raises:
        FillMaskError: the request is invalid, or the service is overloaded.
    """
    request = await read_request(ClassifyRequest, served, body, content_type)
    result = await served.require_classification().classify(
        request.texts, request.options, report_errors=request.report_errors, reserve=reserve
    )
    if result.is_large:
        return await asyncio.to_thread(labels_to_json, result.labels, single=request.single)
    return labels_to_json(result.labels, single=request.single)

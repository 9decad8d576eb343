"""The endpoints of sparse vectors."""

from typing import Any

from fastapi import APIRouter, Request, Response

from fillmask.api.operations import operation, with_model
from fillmask.api.response_memory import MAX_LOOP_DIMENSIONS
from fillmask.api.search.embed_sparse import EmbedSparseRequest, EmbedSparseResponse
from fillmask.api.task_call import TaskCall, json_response, task_call
from fillmask.api.task_route import SparseRoute
from fillmask.results.sparse import SparseEmbedding, vectors_to_json

_TAGS: list[Any] = ["Sparse vectors"]


def add_sparse_routes(router: APIRouter) -> None:
    """Add the endpoints."""
    vectors = operation(
        [EmbedSparseRequest],
        {"model": EmbedSparseResponse},
        summary="Make sparse vectors of one or more texts",
        tags=_TAGS,
    )

    @with_model(SparseRoute, router, "/embed_sparse", vectors)
    async def embed_sparse(request: Request) -> Response:
        async with task_call(request) as call:
            return await _embed(call)


async def _embed(call: TaskCall) -> Response:
    body = await call.read(EmbedSparseRequest.read)
    options = [body.options_of(**body.truncation)] * len(body.texts)
    found = await call.embed_sparse(body.texts, options)
    dimensions = sum(len(one.indices) for one in found if isinstance(one, SparseEmbedding))
    large = dimensions > MAX_LOOP_DIMENSIONS
    return await json_response(vectors_to_json, found, body.format or "pairs", large=large)

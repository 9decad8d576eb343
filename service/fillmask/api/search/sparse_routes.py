"""The endpoints of sparse vectors."""

from typing import Any

from fastapi import APIRouter, Request, Response

from fillmask.api.operations import operation
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

    @SparseRoute.post(router, "/embed_sparse", **vectors)
    async def embed_sparse(request: Request) -> Response:
        async with task_call(request) as call:
            return await _embed(call)

    @SparseRoute.post(router, "/models/{name:path}/embed_sparse", **vectors)
    async def embed_sparse_with_model(request: Request, name: str) -> Response:
        async with task_call(request, name) as call:
            return await _embed(call)


async def _embed(call: TaskCall) -> Response:
    body = await call.read(EmbedSparseRequest.read)
    found = await call.embed_sparse(body.texts, [body.options] * len(body.texts))
    dimensions = sum(len(one.indices) for one in found if isinstance(one, SparseEmbedding))
    large = dimensions > MAX_LOOP_DIMENSIONS
    return await json_response(vectors_to_json, found, body.format or "pairs", large=large)

"""The endpoints of sparse vectors."""

from fastapi import APIRouter, Response

from fillmask.api.operations import add_route, with_call
from fillmask.api.response_memory import MAX_LOOP_DIMENSIONS, vector_json_bytes
from fillmask.api.task_call import TaskCall, json_response
from fillmask.api.task_route import SparseRoute
from fillmask.api.wire.embed_sparse import EmbedSparseRequest, EmbedSparseResponse
from fillmask.tasks.sparse.results import SparseEmbedding, vectors_to_json


def add_sparse_routes(router: APIRouter) -> None:
    add_route(
        router,
        SparseRoute,
        "/embed_sparse",
        with_call(_embed),
        name="embed_sparse",
        reads=[EmbedSparseRequest],
        responds=EmbedSparseResponse,
        with_model=True,
        summary="Make sparse vectors of one or more texts",
        tags=["Sparse vectors"],
    )


async def _embed(call: TaskCall) -> Response:
    body = await call.read(EmbedSparseRequest.read)
    options = [body.options_of(**body.truncation)] * len(body.texts)
    found = await call.run(call.served.require_sparse(), body.texts, options)
    dimensions = sum(len(one.indices) for one in found if isinstance(one, SparseEmbedding))
    call.claim.add(vector_json_bytes(dimensions))
    large = dimensions > MAX_LOOP_DIMENSIONS
    return await json_response(vectors_to_json, found, body.format or "pairs", large=large)

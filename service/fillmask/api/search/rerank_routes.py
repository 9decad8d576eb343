"""The endpoints of rerankers and classifiers for other servers' clients."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from fillmask.api.operations import operation
from fillmask.api.search.predict_tei import TeiPredictRequest, TeiPredictResponse
from fillmask.api.search.rerank import (
    RankBody,
    RankDocumentsRequest,
    RankedDocumentsResponse,
    RerankRequest,
)
from fillmask.api.task_call import TaskCall, json_response, task_call
from fillmask.api.task_route import ClassifyRoute, NamedRerankRoute, RerankRoute
from fillmask.observability.request_context import REQUEST_ID
from fillmask.parameters.classify import ClassificationOptions
from fillmask.results.labels import ClassificationResult, labels_to_json
from fillmask.results.ranks import rank_texts

_TAGS: list[Any] = ["Reranking"]
_COHERE = ClassificationOptions(function_to_apply="sigmoid", truncate=True)


def add_rerank_routes(router: APIRouter) -> None:
    """Add the endpoints."""
    ranks = operation(
        [RerankRequest],
        {"model": list[RankBody]},
        summary="Order texts by their relevance to a query",
        tags=_TAGS,
    )
    labels = operation(
        [TeiPredictRequest],
        {"model": TeiPredictResponse},
        summary="Classify one or more texts",
        tags=_TAGS,
    )
    documents = operation(
        [RankDocumentsRequest],
        {"model": RankedDocumentsResponse},
        summary="Order documents by their relevance to a query",
        tags=_TAGS,
    )

    @RerankRoute.post(router, "/rerank", **ranks)
    async def rerank(request: Request) -> Response:
        async with task_call(request) as call:
            return await _rerank(call)

    @RerankRoute.post(router, "/models/{name:path}/rerank", **ranks)
    async def rerank_with_model(request: Request, name: str) -> Response:
        async with task_call(request, name) as call:
            return await _rerank(call)

    @ClassifyRoute.post(router, "/predict", **labels)
    async def predict_labels(request: Request) -> Response:
        async with task_call(request) as call:
            return await _predict(call)

    @ClassifyRoute.post(router, "/models/{name:path}/predict", **labels)
    async def predict_labels_with_model(request: Request, name: str) -> Response:
        async with task_call(request, name) as call:
            return await _predict(call)

    @NamedRerankRoute.post(router, "/v1/rerank", **documents)
    async def v1_rerank(request: Request) -> Response:
        async with task_call(request) as call:
            return await _rank_documents(call)

    @NamedRerankRoute.post(router, "/v2/rerank", **documents)
    async def v2_rerank(request: Request) -> Response:
        async with task_call(request) as call:
            return await _rank_documents(call)


async def _rerank(call: TaskCall) -> Response:
    body = await call.read(RerankRequest.read)
    call.claim_repeated(body.return_text)
    labels, _ = await call.rerank(body.pairs, body.options, "texts")
    ranks = [
        {"index": one.index, "score": one.score}
        | ({"text": body.texts[one.index]} if body.return_text else {})
        for one in rank_texts(labels)
    ]
    return await json_response(to_json, ranks)


async def _rank_documents(call: TaskCall) -> Response:
    body = await call.read(RankDocumentsRequest.read)
    call.claim_repeated(body.return_documents)
    with call.of_model(body.model) as chosen:
        labels, tokens = await chosen.rerank(body.pairs, _COHERE, "documents")
        results = [
            {"index": one.index, "relevance_score": one.score}
            | ({"document": {"text": body.documents[one.index]}} if body.return_documents else {})
            for one in rank_texts(labels, body.top_n)
        ]
        response = {
            "id": call.request.scope[REQUEST_ID].decode(),
            "model": chosen.served.name,
            "results": results,
            "usage": {"total_tokens": tokens},
        }
    return await json_response(to_json, response)


async def _predict(call: TaskCall) -> Response:
    body = await call.read(TeiPredictRequest.read)
    options = [body.options] * len(body.texts)
    result = await call.classify(body.texts, options, report_errors=False)
    return await json_response(_labels_json, result, single=body.single, large=result.is_large)


def _labels_json(result: ClassificationResult, *, single: bool) -> bytes:
    content = labels_to_json(result.labels, single=single)
    return content[1:-1] if single else content  # one text has no list around its labels

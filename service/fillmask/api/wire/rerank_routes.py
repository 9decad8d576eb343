"""The endpoints of rerankers and classifiers for other servers' clients."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic_core import to_json

from fillmask.api.operations import add_route, with_call
from fillmask.api.task_call import TaskCall, json_response
from fillmask.api.task_route import ClassifyRoute, RerankRoute
from fillmask.api.wire.predict_tei import TeiPredictRequest, TeiPredictResponse
from fillmask.api.wire.rerank import (
    RankBody,
    RankDocumentsRequest,
    RankedDocumentsResponse,
    RerankRequest,
    read_either,
)
from fillmask.observability.request_context import REQUEST_ID
from fillmask.tasks.classify.parameters import ClassificationOptions, FunctionToApply
from fillmask.tasks.classify.results import ClassificationResult, labels_to_json
from fillmask.tasks.rerank.results import rank_texts

_TAGS: list[Any] = ["Reranking"]
# vLLM's is an object and Infinity's a text, and litellm, which asks both alike, fails at the other
_VERSIONS = {"/v1/rerank": "1", "/v2/rerank": "2"}  # of Cohere's API
_NOT_REPEATED = "Only /v1/rerank and /v2/rerank repeat the documents."


def add_rerank_routes(router: APIRouter) -> None:
    add_route(
        router,
        RerankRoute,
        "/rerank",
        with_call(_rerank),
        name="rerank",
        reads=[RerankRequest, RankDocumentsRequest],
        responds=list[RankBody] | RankedDocumentsResponse,
        with_model=True,
        summary="Order texts or documents by their relevance to a query",
        tags=_TAGS,
    )
    add_route(
        router,
        ClassifyRoute,
        "/predict",
        with_call(_predict),
        name="predict_labels",
        reads=[TeiPredictRequest],
        responds=TeiPredictResponse,
        with_model=True,
        summary="Classify one or more texts",
        tags=_TAGS,
    )
    for path in _VERSIONS:
        add_route(
            router,
            RerankRoute,
            path,
            with_call(_rerank_documents),
            name=path.strip("/").replace("/", "_"),
            reads=[RankDocumentsRequest],
            responds=RankedDocumentsResponse,
            summary="Order documents by their relevance to a query",
            tags=_TAGS,
        )


async def _rerank(call: TaskCall) -> Response:
    body = await call.read(read_either)
    if isinstance(body, RankDocumentsRequest):
        return await _rank_documents(call, body)
    call.claim_repeated(body.return_text)
    with call.of_model(body.model) as chosen:
        options = body.options_of(**body.truncation)
        labels, _ = await chosen.rerank(body.query, body.texts, options, "texts")
    ranks = [
        {"index": one.index, "score": one.score}
        | ({"text": body.texts[one.index]} if body.return_text else {})
        for one in rank_texts(labels, body.top_n)
    ]
    return await json_response(to_json, ranks)


async def _rerank_documents(call: TaskCall) -> Response:
    return await _rank_documents(call, await call.read(RankDocumentsRequest.read))


async def _rank_documents(call: TaskCall, body: RankDocumentsRequest) -> Response:
    call.claim_repeated(body.return_documents)
    with call.of_model(body.model) as chosen:
        labels, tokens = await chosen.rerank(
            body.query, body.texts, body.options, "documents", body.check_tokens
        )
    version = _VERSIONS.get(call.request.url.path)
    results: list[dict[str, Any]] = []
    for one in rank_texts(labels, body.top_n):
        results.append({"index": one.index, "relevance_score": one.score})
        if body.return_documents and version:
            document = body.documents[one.index]
            results[-1]["document"] = {"text": document} if isinstance(document, str) else document
    response = {
        "id": call.request.scope[REQUEST_ID].decode(),
        "model": chosen.served.name,
        "results": results,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "meta": {
            "api_version": {"version": version or "1"},
            "billed_units": {"search_units": 0},
            "tokens": {"input_tokens": tokens},
            **({"warnings": [_NOT_REPEATED]} if body.return_documents and not version else {}),
        },
    }
    return await json_response(to_json, response)


async def _predict(call: TaskCall) -> Response:
    body = await call.read(TeiPredictRequest.read)
    function: FunctionToApply | None = "none" if body.raw_scores else None
    options = [ClassificationOptions(None, function, **body.truncation)] * len(body.texts)
    result = await call.run(call.served.require_classification(), body.texts, options)
    return await json_response(_labels_json, result, single=body.single, large=result.is_large)


def _labels_json(result: ClassificationResult, *, single: bool) -> bytes:
    content = labels_to_json(result.labels, single=single)
    return content[1:-1] if single else content  # one text has no list around its labels

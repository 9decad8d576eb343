"""The formats of Cohere and Jina AI for reranking, which vLLM and others share.

The texts of text-embeddings-inference are their documents.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator
from pydantic_core import to_json

from fillmask.api.models import MainRerankRoute, RerankRoute
from fillmask.api.operations import add_route
from fillmask.api.request_body import only, read_json
from fillmask.api.task_call import TaskCall, json_response
from fillmask.api.wire.tei import BEST, QUERY, QueryRequest, RankBody, RerankRequest
from fillmask.errors import InvalidRequestError
from fillmask.observability.request_context import REQUEST_ID
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import Truncation
from fillmask.parameters.types import Flag
from fillmask.parameters.validation import BODY, ValidationContext, described, validation_context
from fillmask.tasks.rerank.parameters import read_ranked
from fillmask.tasks.rerank.results import rank_texts
from fillmask.tasks.result import never_null

_TAGS: list[Any] = ["Reranking"]
# vLLM's is an object and Infinity's a text, and litellm, which asks both alike, fails at the other
_VERSIONS = {"/v1/rerank": "1", "/v2/rerank": "2"}  # of Cohere's API
_NOT_REPEATED = "Only /v1/rerank and /v2/rerank repeat the documents."
_DOCUMENT = 'a text or {"text": text}'

# fields of Cohere, vLLM and litellm that change nothing, or get a refusal by name
_Label = Annotated[str | None, only("a text or null", "it has no effect")]
_Number = Annotated[int | None, only("a whole number or null", "it has no effect")]
_Tokens = Annotated[int | None, only("a whole number or null", "no input may be longer")]
_Null = Annotated[None, only("null", "the service adds nothing to texts")]


class Document(BaseModel):
    """A document as an object, with any other fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    text: str


class RankDocumentsRequest(QueryRequest):
    """A request to order documents by their relevance to a query.

    A pair that exceeds the model's input loses tokens of its longer text.
    """

    model_config = ConfigDict(
        json_schema_extra=described({"query": QUERY, "documents": [BEST, "It rains."], "top_n": 1})
    )

    documents: list[JsonValue] = Field(
        description="The documents to order, of which some may be blank."
    )
    return_documents: Flag = Field(
        default=False, description="Whether the response repeats the documents."
    )
    rank_fields: Annotated[
        list[Literal["text"]] | None, only('null or ["text"]', "put what matters into text")
    ] = None
    max_chunks_per_doc: Annotated[
        int | None, Field(ge=1), only("null or at least 1", "each document is one chunk")
    ] = None
    max_tokens_per_doc: _Tokens = None
    max_tokens_per_query: _Tokens = None
    truncate_prompt_tokens: _Tokens = None
    truncation_side: Annotated[
        Literal["left", "right"] | None,
        only("left or right", "by default, texts are cut as the model cuts them"),
    ] = None
    use_activation: Annotated[
        Literal[True] | None, only("true or null", "use raw_scores for logits")
    ] = None
    instruction: _Null = None
    mm_processor_kwargs: _Null = None
    priority: _Number = None
    user: _Label = None
    request_id: _Label = None
    cache_salt: _Label = None

    @field_validator(
        "documents",
        mode="plain",
        json_schema_input_type=Annotated[list[str | Document], Field(min_length=1)],
    )
    @classmethod
    def _check_documents(cls, value: object, info: ValidationInfo) -> object:
        texts = _texts(value) if isinstance(value, list) else value
        read_ranked(texts, "documents", validation_context(info).limits.max_texts, _DOCUMENT)
        return value

    @property
    def texts(self) -> list[str]:
        return _texts(self.documents)

    @property
    def truncation(self) -> Truncation:
        return Truncation(truncate=True, side=self.truncation_side)

    def check_tokens(self, longest: int) -> None:
        """Raise InvalidRequestError if a limit would cut the longest pair."""
        for name in ("max_tokens_per_doc", "max_tokens_per_query", "truncate_prompt_tokens"):
            if (most := getattr(self, name)) is not None and -1 != most < longest:
                raise InvalidRequestError(
                    f"{name} must be null or at least {longest}, the tokens of query and document "
                    f"(got {most}); send shorter texts."
                )


class RankedDocumentBody(BaseModel):
    """A document with its relevance."""

    index: int = Field(description="Index of the document in the request, from 0.")
    relevance_score: float = Field(description="Probability that the document is relevant.")
    document: Document | None = Field(
        default=None, json_schema_extra=never_null, description="The document, on request."
    )


class UsageBody(BaseModel):
    """Work of a request."""

    prompt_tokens: int = Field(description="The same as total_tokens.")
    total_tokens: int = Field(description="Tokens of all pairs, special tokens included.")


class RankedDocumentsResponse(BaseModel):
    """The documents, best first."""

    id: str = Field(description="Id of the request.")
    model: str = Field(description="Name of the model.")
    results: list[RankedDocumentBody]
    usage: UsageBody
    meta: dict[str, JsonValue] = Field(
        description="The version of Cohere's API, the tokens, what the request costs (nothing) and "
        "warnings."
    )


def add_rerank_routes(router: APIRouter) -> None:
    add_route(
        router,
        MainRerankRoute,
        "/rerank",
        _rerank,
        name="rerank",
        reads=[RerankRequest, RankDocumentsRequest],
        responds=list[RankBody] | RankedDocumentsResponse,
        with_model=True,
        summary="Order texts or documents by their relevance to a query",
        tags=_TAGS,
    )
    for path in _VERSIONS:
        add_route(
            router,
            RerankRoute,
            path,
            _rerank_documents,
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
        labels, _ = await chosen.rerank(body, "texts")
    ranks = [
        {"index": one.index, "score": one.score}
        | ({"text": body.texts[one.index]} if body.return_text else {})
        for one in rank_texts(labels, body.top_n)
    ]
    return await json_response(lambda: to_json(ranks))


async def _rerank_documents(call: TaskCall) -> Response:
    return await _rank_documents(call, await call.read(RankDocumentsRequest.read))


async def _rank_documents(call: TaskCall, body: RankDocumentsRequest) -> Response:
    call.claim_repeated(body.return_documents)
    with call.of_model(body.model) as chosen:
        labels, tokens = await chosen.rerank(body, "documents", body.check_tokens)
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
    return await json_response(lambda: to_json(response))


def read_either(
    body: bytes, content_type: str | None, limits: Limits
) -> RerankRequest | RankDocumentsRequest:
    """Read a request with texts or with documents, as `JsonRequest.read` does."""
    value = read_json(body, content_type)
    has_documents = isinstance(value, dict) and "documents" in value
    form = RankDocumentsRequest if has_documents else RerankRequest
    return form.check(value, ValidationContext(limits, place=BODY))


def _texts(documents: list[Any]) -> list[Any]:
    return [one.get("text", one) if isinstance(one, dict) else one for one in documents]

"""Request and response bodies of reranking.

The texts of text-embeddings-inference are the documents of Cohere, Jina AI, vLLM and others.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
)

from fillmask.api.json_body import read_json
from fillmask.api.request_body import JsonRequest, only
from fillmask.api.schema import fields_of, never_null
from fillmask.api.wire.truncation import TruncationFields
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.types import Flag
from fillmask.parameters.validation import (
    BODY,
    ValidationContext,
    described,
    validation_context,
)
from fillmask.tasks.classify.parameters import ClassificationOptions
from fillmask.tasks.rerank.parameters import NonBlank, RankFields, read_ranked
from fillmask.tasks.rerank.results import RankedText

_QUERY, _BEST = "What do pandas eat?", "The panda eats bamboo."
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


class QueryRequest(RankFields, JsonRequest):
    """The fields of both forms."""

    model: NonBlank | None = Field(
        default=None, description="Name of the model. The default is the first that can rerank."
    )


class RerankRequest(TruncationFields, QueryRequest):
    """A request to order texts by their relevance to a query."""

    model_config = ConfigDict(
        json_schema_extra=described({"query": _QUERY, "texts": [_BEST, "It rains."]})
    )

    texts: list[str] = Field(description="The texts to order, of which some may be blank.")
    return_text: Flag = Field(default=False, description="Whether the response repeats the texts.")

    @field_validator(
        "texts", mode="plain", json_schema_input_type=Annotated[list[str], Field(min_length=1)]
    )
    @classmethod
    def _check_texts(cls, value: object, info: ValidationInfo) -> object:
        return read_ranked(value, "texts", validation_context(info).limits.max_texts)


@fields_of(RankedText)
class RankBody(BaseModel):
    """A text with its score."""

    text: str | None = Field(
        default=None, json_schema_extra=never_null, description="The text, with return_text."
    )


class RankDocumentsRequest(QueryRequest):
    """A request to order documents by their relevance to a query.

    A pair that exceeds the model's input loses tokens of its longer text.
    """

    model_config = ConfigDict(
        json_schema_extra=described(
            {"query": _QUERY, "documents": [_BEST, "It rains."], "top_n": 1}
        )
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
    def options(self) -> ClassificationOptions:
        return self.options_of(truncate=True, side=self.truncation_side)

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

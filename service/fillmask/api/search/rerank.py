"""Request and response bodies of reranking.

/rerank has the form of text-embeddings-inference. /v1/rerank and /v2/rerank have that of Cohere and
Jina AI.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from fillmask.api.bodies.request_body import JsonRequest
from fillmask.api.bodies.schema import never_null
from fillmask.parameters.classify import ClassificationOptions
from fillmask.parameters.texts import TextPair, read_text
from fillmask.parameters.validation import (
    check_flag,
    check_whole_number,
    described,
    validation_context,
)
from fillmask.parameters.values import NOT_BLANK, client_error, describe

_QUERY, _BEST = "What do pandas eat?", "The panda eats bamboo."
_Text = Annotated[str, Field(pattern=NOT_BLANK)]


class Document(BaseModel):
    """A document as an object."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: _Text


class QueryRequest(JsonRequest):
    """A query, the first text of every pair."""

    query: _Text = Field(description="The query.")

    @field_validator("query", mode="plain", json_schema_input_type=_Text)
    @classmethod
    def _check_query(cls, value: object) -> object:
        return read_text(value, "query")


class RerankRequest(QueryRequest):
    """A request to order texts by their relevance to a query."""

    model_config = ConfigDict(
        json_schema_extra=described({"query": _QUERY, "texts": [_BEST, "It rains."]})
    )

    texts: list[str] = Field(description="The texts to order.")
    raw_scores: bool = Field(
        default=False, description="Whether a score is the logit instead of its sigmoid."
    )
    return_text: bool = Field(default=False, description="Whether the response repeats the texts.")
    truncate: bool = Field(
        default=False,
        description="Whether a pair that exceeds the model's input loses the end of its longer "
        "text. Otherwise it is invalid.",
    )

    @field_validator(
        "texts", mode="plain", json_schema_input_type=Annotated[list[_Text], Field(min_length=1)]
    )
    @classmethod
    def _check_texts(cls, value: object, info: ValidationInfo) -> object:
        return [read_text(*one) for one in _items(value, info)]

    @field_validator("raw_scores", "return_text", "truncate", mode="before")
    @classmethod
    def _check_flags(cls, value: object, info: ValidationInfo) -> bool:
        return check_flag(value, info)

    @property
    def pairs(self) -> list[TextPair]:
        """The query with each text."""
        return [TextPair(self.query, text) for text in self.texts]

    @property
    def options(self) -> ClassificationOptions:
        """Options of each pair."""
        return ClassificationOptions(
            function_to_apply="none" if self.raw_scores else "sigmoid", truncate=self.truncate
        )


class RankBody(BaseModel):
    """A text with its score."""

    index: int = Field(description="Index of the text in the request, from 0.")
    text: str | None = Field(
        default=None, json_schema_extra=never_null, description="The text, with return_text."
    )
    score: float = Field(description="Probability that the text is relevant, or its logit.")


class RankDocumentsRequest(QueryRequest):
    """A request to order documents by their relevance to a query, for Cohere's and Jina's clients.

    A pair that exceeds the model's input loses the end of its longer text.
    """

    model_config = ConfigDict(
        json_schema_extra=described(
            {"query": _QUERY, "documents": [_BEST, "It rains."], "top_n": 1}
        )
    )

    documents: list[str] = Field(description="The documents to order.")
    model: str | None = Field(
        default=None, description="Name of the model. The default is the first model with labels."
    )
    top_n: int | None = Field(
        default=None, ge=1, description="Maximum number of documents in the response."
    )
    return_documents: bool = Field(
        default=False, description="Whether the response repeats the documents."
    )
    max_tokens_per_doc: None = Field(
        default=None, description="Only null, because the model's input limits the documents."
    )

    @field_validator(
        "documents",
        mode="plain",
        json_schema_input_type=Annotated[list[_Text | Document], Field(min_length=1)],
    )
    @classmethod
    def _check_documents(cls, value: object, info: ValidationInfo) -> object:
        return [
            read_text(one["text"], f"{label}.text")
            if isinstance(one, dict) and one.keys() == {"text"}
            else read_text(one, label)
            for one, label in _items(value, info)
        ]

    @field_validator("model", mode="before")
    @classmethod
    def _check_model(cls, value: object) -> object:
        return value if value is None else read_text(value, "model")

    @field_validator("top_n", mode="before")
    @classmethod
    def _check_top_n(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info)

    @field_validator("return_documents", mode="before")
    @classmethod
    def _check_flags(cls, value: object, info: ValidationInfo) -> bool:
        return check_flag(value, info)

    @field_validator("max_tokens_per_doc", mode="before")
    @classmethod
    def _check_null(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        raise client_error(
            f"{info.field_name} must be null (got {describe(value)}); the model's input limits the "
            "documents."
        )

    @property
    def pairs(self) -> list[TextPair]:
        """The query with each document."""
        return [TextPair(self.query, text) for text in self.documents]


class RankedDocumentBody(BaseModel):
    """A document with its relevance."""

    index: int = Field(description="Index of the document in the request, from 0.")
    relevance_score: float = Field(description="Probability that the document is relevant.")
    document: Document | None = Field(
        default=None, json_schema_extra=never_null, description="The document, on request."
    )


class UsageBody(BaseModel):
    """Work of a request."""

    total_tokens: int = Field(description="Tokens of all pairs, special tokens included.")


class RankedDocumentsResponse(BaseModel):
    """The documents, best first."""

    id: str = Field(description="Id of the request.")
    model: str = Field(description="Name of the model.")
    results: list[RankedDocumentBody]
    usage: UsageBody


def _items(value: object, info: ValidationInfo) -> list[tuple[object, str]]:
    """Return the items of a list with their labels in error messages."""
    name, most = info.field_name, validation_context(info).limits.max_texts
    if not isinstance(value, list) or not value:
        raise client_error(f"{name} must be a list of one or more texts (got {describe(value)}).")
    if len(value) > most:
        raise client_error(f"{name} must have at most {most} texts (got {len(value)}).")
    return [(one, f"{name}[{index}]") for index, one in enumerate(value)]

"""The formats of text-embeddings-inference: /predict, /embed_sparse and the texts of /rerank."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationInfo,
    field_validator,
)

from fillmask.api.models import route_of
from fillmask.api.operations import add_route
from fillmask.api.request_body import InputsRequest, JsonRequest, only
from fillmask.api.task_call import TaskCall, json_response
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import (
    InputText,
    TextPair,
    Truncation,
    check_text_count,
    read_inputs,
    read_text,
    read_texts,
)
from fillmask.parameters.types import NOT_BLANK, Flag
from fillmask.parameters.validation import described, validation_context
from fillmask.parameters.values import describe
from fillmask.tasks.classify.parameters import FunctionToApply
from fillmask.tasks.classify.results import LabelBody
from fillmask.tasks.pipeline import Inputs
from fillmask.tasks.rerank.parameters import NonBlank, RankFields, read_ranked
from fillmask.tasks.rerank.results import RankedText
from fillmask.tasks.result import accepted, fields_of, never_null, response_parts
from fillmask.tasks.sparse.parameters import SparseFields
from fillmask.tasks.sparse.pipeline import vectors_size
from fillmask.tasks.sparse.results import VectorFormat, vector_to_json
from fillmask.tasks.task import CLASSIFY, SPARSE

# writing this many dimensions takes about as long as a switch to another thread allows
MAX_LOOP_DIMENSIONS = 1_000
QUERY, BEST = "What do pandas eat?", "The panda eats bamboo."
_FORM = "a text, a pair [text, text] or a list of [text] and [text, text]"
_Text = Annotated[str, Field(pattern=NOT_BLANK)]
_Texts = (
    Annotated[list[_Text], Field(min_length=1, max_length=1)]
    | Annotated[list[str], Field(min_length=2, max_length=2)]
)
_Inputs = _Text | _Texts | Annotated[list[_Texts], Field(min_length=1)]


class TruncationFields(BaseModel):
    """Fields of requests with texts that may be cut, as a mixin."""

    truncate: Flag | None = Field(
        default=None,
        description="Whether a text that exceeds the model's input loses tokens, and a pair those "
        "of its longer text. Otherwise it is invalid. The default is false, unless the service has "
        "auto_truncate or the model was published with a maximum length to which it truncates.",
    )
    truncation_direction: Annotated[
        Literal["Left", "Right"] | None,
        BeforeValidator(lambda value: value.title() if value in ("left", "right") else value),
        only("Left or Right", "by default, texts are cut as the model cuts them"),
    ] = None

    @property
    def truncation(self) -> Truncation:
        side: Any = self.truncation_direction and self.truncation_direction.lower()
        return Truncation(self.truncate, side, cure="truncate to true")


class TeiPredictRequest(TruncationFields, InputsRequest):
    """A request to classify texts and pairs."""

    model_config = ConfigDict(
        json_schema_extra=described(
            {"inputs": "I loved this film."}, {"inputs": [["I loved it."], ["Where?", "Here."]]}
        )
    )

    inputs: InputText | list[InputText] = Field(description=f"The texts: {_FORM}.")
    raw_scores: Flag = Field(
        default=False, description="Whether a score is the logit of its label."
    )

    @property
    def top_k(self) -> None:
        """All labels."""

    @property
    def function_to_apply(self) -> FunctionToApply | None:
        return "none" if self.raw_scores else None

    @field_validator("inputs", mode="plain", json_schema_input_type=_Inputs)
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list) or (value and isinstance(value[0], str)):
            return _read_one(value, "inputs")
        if not value:
            raise InvalidRequestError(f"inputs is empty; send {_FORM}.")
        check_text_count(value, "inputs", validation_context(info).limits.max_texts)
        for index, one in enumerate(value):
            if not isinstance(one, list):
                raise InvalidRequestError(
                    f"inputs[{index}] must be [text] or [text, text] (got {describe(one)})."
                )
        return [_read_one(one, f"inputs[{index}]") for index, one in enumerate(value)]


class TeiPredictResponse(RootModel[list[LabelBody] | list[list[LabelBody]]]):
    """The labels of one text, best first, or a list with the labels of each text."""


class QueryRequest(RankFields, JsonRequest):
    """The fields of both forms."""

    model: NonBlank | None = Field(
        default=None, description="Name of the model. The default is the first that can rerank."
    )


class RerankRequest(TruncationFields, QueryRequest):
    """A request to order texts by their relevance to a query."""

    model_config = ConfigDict(
        json_schema_extra=described({"query": QUERY, "texts": [BEST, "It rains."]})
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


class EmbedSparseRequest(SparseFields, TruncationFields, InputsRequest):
    """A request for the sparse vectors of texts.

    The fields of text-embeddings-inference are inputs, truncate and the two after it.
    """

    model_config = ConfigDict(
        json_schema_extra=described(
            {"inputs": "What do pandas eat?"},
            {"inputs": ["It rains."], "format": "tokens", "top_n": 100},
        ),
    )

    inputs: InputText | list[InputText] = Field(description="A text or a list of texts.")
    prompt_name: Annotated[None, only("null", "write the prompt before each text")] = None
    format: VectorFormat | None = Field(
        default=None,
        description="Form of a vector. It is a list of index and value (pairs, the default), an "
        "object with the weight of each token (tokens), or an object with the lists indices and "
        "values (arrays).",
    )

    @field_validator(
        "inputs",
        mode="plain",
        json_schema_input_type=str | Annotated[list[str], Field(min_length=1)],
    )
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        most = validation_context(info).limits.max_texts
        return read_inputs(value, "inputs", most, pairs=False)


class WeightBody(BaseModel):
    """A dimension of a vector."""

    index: int = Field(description="Id of the token.")
    value: float = Field(description="Weight of the token.")


class VectorBody(BaseModel):
    """A vector as two lists, with the format arrays."""

    indices: list[int] = Field(description="Ascending ids of the tokens.")
    values: list[float] = Field(description="Weight of each token.")


class EmbedSparseResponse(RootModel[list[list[WeightBody] | VectorBody | dict[str, float]]]):
    """The vector of each text, also of a single text."""


def add_tei_routes(router: APIRouter) -> None:
    add_route(
        router,
        route_of(CLASSIFY.of_bundle, is_main=False),
        "/predict",
        _predict,
        name="predict_labels",
        reads=[TeiPredictRequest],
        responds=TeiPredictResponse,
        with_model=True,
        summary="Classify one or more texts",
        tags=["Reranking"],
    )
    add_route(
        router,
        route_of(SPARSE.of_bundle),
        "/embed_sparse",
        _embed,
        name="embed_sparse",
        reads=[EmbedSparseRequest],
        responds=EmbedSparseResponse,
        with_model=True,
        summary="Make sparse vectors of one or more texts",
        tags=["Sparse vectors"],
    )


async def _predict(call: TaskCall) -> Response:
    body = await call.read(TeiPredictRequest.read)
    results, large = await call.run(CLASSIFY, Inputs(body.texts, [body] * len(body.texts)))

    def write() -> bytes:
        return b"".join(response_parts(results, CLASSIFY.to_json, single=body.single))

    return await json_response(write, large=large)


async def _embed(call: TaskCall) -> Response:
    body = await call.read(EmbedSparseRequest.read)
    results, _ = await call.run(SPARSE, Inputs(body.texts, [body] * len(body.texts)))
    dimensions = sum(len(one.indices) for one in accepted(results))
    call.claim_size(vectors_size(dimensions))

    def write() -> bytes:
        form = body.format or "pairs"
        parts = response_parts(results, lambda one: vector_to_json(one, form), single=False)
        return b"".join(parts)

    return await json_response(write, large=dimensions > MAX_LOOP_DIMENSIONS)


def _read_one(value: object, label: str) -> InputText:
    if not isinstance(value, list):
        return read_text(value, label)
    match value:
        case [text]:
            return read_text(text, f"{label}[0]")
        case [_, _]:  # TEI also reads a pair with a blank text
            return TextPair(*read_texts(value, label, 2))
    raise InvalidRequestError(f"{label} must have 1 or 2 texts (got {len(value)}); send {_FORM}.")

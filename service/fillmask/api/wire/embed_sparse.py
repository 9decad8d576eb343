"""Request and response bodies of /embed_sparse, in the form of text-embeddings-inference."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationInfo, field_validator

from fillmask.api.request_body import InputsRequest, only
from fillmask.api.wire.truncation import TruncationFields
from fillmask.parameters.texts import InputText, read_inputs
from fillmask.parameters.validation import described, validation_context
from fillmask.tasks.sparse.parameters import SparseFields
from fillmask.tasks.sparse.results import VectorFormat


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

"""Request and response bodies of /embed_sparse, in the form of text-embeddings-inference."""

from typing import Annotated, get_args

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationInfo, field_validator

from fillmask.api.bodies.request_body import InputsRequest
from fillmask.parameters.sparse import SparseFields, SparseOptions
from fillmask.parameters.texts import InputText, read_text
from fillmask.parameters.validation import check_choice, check_flag, described, validation_context
from fillmask.parameters.values import NOT_BLANK, client_error
from fillmask.results.sparse import VectorFormat

_Text = Annotated[str, Field(pattern=NOT_BLANK)]
_FORMATS: tuple[VectorFormat, ...] = get_args(VectorFormat)


class EmbedSparseRequest(SparseFields, InputsRequest):
    """A request for the sparse vectors of texts.

    The fields inputs and truncate are those of text-embeddings-inference.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra=described(
            {"inputs": "What do pandas eat?"},
            {"inputs": ["It rains."], "format": "tokens", "top_n": 100},
        ),
    )

    inputs: InputText | list[InputText] = Field(description="A text or a list of texts.")
    truncate: bool | None = Field(
        default=None,
        description="Whether a text that exceeds the model's input loses its end. Otherwise it is "
        "invalid. The default is false, unless the model was published with a maximum length to "
        "which it truncates.",
    )
    format: VectorFormat | None = Field(
        default=None,
        description="Form of a vector. It is a list of index and value (pairs, the default), an "
        "object with the weight of each token (tokens), or an object with the lists indices and "
        "values (arrays).",
    )

    @field_validator(
        "inputs",
        mode="plain",
        json_schema_input_type=_Text | Annotated[list[_Text], Field(min_length=1)],
    )
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list):
            return read_text(value, "inputs")
        most = validation_context(info).limits.max_texts
        if not 1 <= len(value) <= most:
            raise client_error(f"inputs must have 1 to {most} texts (got {len(value)}).")
        return [read_text(one, f"inputs[{index}]") for index, one in enumerate(value)]

    @field_validator("truncate", mode="before")
    @classmethod
    def _check_truncate(cls, value: object, info: ValidationInfo) -> bool | None:
        return None if value is None else check_flag(value, info)

    @field_validator("format", mode="before")
    @classmethod
    def _check_format(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _FORMATS, info)

    @property
    def options(self) -> SparseOptions:
        """Options of each text."""
        return self.options_of(truncate=self.truncate)


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

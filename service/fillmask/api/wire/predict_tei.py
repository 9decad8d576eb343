"""Request and response bodies of /predict, in the form of text-embeddings-inference."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel, ValidationInfo, field_validator

from fillmask.api.request_body import InputsRequest
from fillmask.api.wire.classify import LabelBody
from fillmask.api.wire.truncation import TruncationFields
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import (
    InputText,
    TextPair,
    check_text_count,
    read_text,
    read_texts,
)
from fillmask.parameters.types import NOT_BLANK, Flag
from fillmask.parameters.validation import described, validation_context
from fillmask.parameters.values import describe

_FORM = "a text, a pair [text, text] or a list of [text] and [text, text]"
_Text = Annotated[str, Field(pattern=NOT_BLANK)]
_Texts = (
    Annotated[list[_Text], Field(min_length=1, max_length=1)]
    | Annotated[list[str], Field(min_length=2, max_length=2)]
)
_Inputs = _Text | _Texts | Annotated[list[_Texts], Field(min_length=1)]


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


def _read_one(value: object, label: str) -> InputText:
    if not isinstance(value, list):
        return read_text(value, label)
    match value:
        case [text]:
            return read_text(text, f"{label}[0]")
        case [_, _]:  # TEI also reads a pair with a blank text
            return TextPair(*read_texts(value, label, 2))
    raise InvalidRequestError(f"{label} must have 1 or 2 texts (got {len(value)}); send {_FORM}.")

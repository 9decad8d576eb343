"""Request and response bodies of /predict, in the form of text-embeddings-inference."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel, ValidationInfo, field_validator

from fillmask.api.bodies.classify import LabelBody
from fillmask.api.bodies.request_body import InputsRequest
from fillmask.parameters.classify import ClassificationOptions
from fillmask.parameters.texts import InputText, TextPair, read_text
from fillmask.parameters.validation import check_flag, described, validation_context
from fillmask.parameters.values import NOT_BLANK, client_error, describe

_FORM = "a text, a pair [text, text] or a list of [text] and [text, text]"
_Text = Annotated[str, Field(pattern=NOT_BLANK)]
_Texts = Annotated[list[_Text], Field(min_length=1, max_length=2)]
_Inputs = _Text | _Texts | Annotated[list[_Texts], Field(min_length=1)]


class TeiPredictRequest(InputsRequest):
    """A request to classify texts and pairs.

    Attributes:
        inputs: one text or pair, or a list of these.
    """

    model_config = ConfigDict(
        json_schema_extra=described(
            {"inputs": "I loved this film."}, {"inputs": [["I loved it."], ["Where?", "Here."]]}
        )
    )

    inputs: InputText | list[InputText] = Field(description=f"The texts: {_FORM}.")
    raw_scores: bool = Field(
        default=False, description="Whether a score is the logit of its label."
    )
    truncate: bool = Field(
        default=False,
        description="Whether a text that exceeds the model's input loses its end.",
    )

    @field_validator("inputs", mode="plain", json_schema_input_type=_Inputs)
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list) or (value and isinstance(value[0], str)):
            return _read_one(value, "inputs")
        most = validation_context(info).limits.max_texts
        if not 1 <= len(value) <= most:
            raise client_error(f"inputs must have 1 to {most} texts (got {len(value)}).")
        for index, one in enumerate(value):
            if not isinstance(one, list):
                raise client_error(
                    f"inputs[{index}] must be [text] or [text, text] (got {describe(one)})."
                )
        return [_read_one(one, f"inputs[{index}]") for index, one in enumerate(value)]

    @field_validator("raw_scores", "truncate", mode="before")
    @classmethod
    def _check_flags(cls, value: object, info: ValidationInfo) -> bool:
        return check_flag(value, info)

    @property
    def options(self) -> ClassificationOptions:
        """Options of each text."""
        return ClassificationOptions(
            function_to_apply="none" if self.raw_scores else None, truncate=self.truncate
        )


class TeiPredictResponse(RootModel[list[LabelBody] | list[list[LabelBody]]]):
    """The labels of one text, best first, or a list with the labels of each text."""


def _read_one(value: object, label: str) -> InputText:
    if not isinstance(value, list):
        return read_text(value, label)
    parts = [read_text(part, f"{label}[{index}]") for index, part in enumerate(value)]
    match parts:
        case [text]:
            return text
        case [text, text_pair]:
            return TextPair(text, text_pair)
    raise client_error(f"{label} must have 1 or 2 texts (got {len(parts)}); send {_FORM}.")

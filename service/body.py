"""What all request bodies have in common: texts, limits, and errors in our own words."""

import json
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from service.errors import MAX_QUOTED_CHARS, InvalidRequestError, quote
from service.json_body import read_json

_SENTENCE = "sentence"  # type of the errors whose text is ours


class Limits(BaseModel):
    """The most a request may hold."""

    model_config = ConfigDict(frozen=True)

    max_tokens: int = Field(description="tokens of one text, special tokens included")
    max_texts: int = Field(description="texts of one request")
    max_masks: int = Field(description="masks of one request, over all its texts")
    max_top_k: int = Field(description="fills a mask")
    max_passes: int = Field(
        description="passes of the model for the scores or targets of one request"
    )
    max_body_bytes: int = Field(description="bytes of a request's body")


class Reading(NamedTuple):
    """What a request is checked against.

    Attributes:
        limits: of this server.
        texts: what the wire format calls the texts, for errors.
        targets: the same of the targets.
    """

    limits: Limits
    texts: str = "inputs"
    targets: str = "parameters.targets"


class TextsBody(BaseModel):
    """A request about one text or several.

    Attributes:
        parameters_model: the type of its parameters.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    parameters_model: ClassVar[type[BaseModel]]

    inputs: str | list[str]

    @field_validator("inputs", mode="before")
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        limits, name, _ = reading_of(info)
        if not isinstance(value, str | list):
            raise sentence_error(f"{name} must be a text or a list of texts.")
        if not value:
            raise sentence_error(f"{name} is empty; it must be a text or a list of texts.")
        if isinstance(value, str):
            return value
        if len(value) > limits.max_texts:
            raise sentence_error(
                f"{name} holds {len(value)} texts; at most {limits.max_texts} are allowed."
            )
        for index, text in enumerate(value):
            if not isinstance(text, str) or not text:
                raise sentence_error(f"{name}[{index}] must be a text that is not empty.")
        return value

    @property
    def texts(self) -> list[str]:
        """The inputs, as a list even if there is only one."""
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs

    @property
    def single(self) -> bool:
        """Whether the inputs are one text and no list."""
        return isinstance(self.inputs, str)

    @classmethod
    def read(cls, body: bytes, content_type: str | None, limits: Limits) -> Self:
        """Parse and check a request.

        Raises:
            FillMaskError: one sentence about the first thing that is wrong.
        """
        return cls.check(read_json(body, content_type), Reading(limits))

    @classmethod
    def check(cls, value: object, reading: Reading) -> Self:
        """Check a request that has been parsed.

        Raises:
            InvalidRequestError: one sentence about the first thing that is wrong.
        """
        try:
            return cls.model_validate(value, context=reading)
        except ValidationError as error:
            raise InvalidRequestError(cls._sentence(error.errors()[0])) from None

    @classmethod
    def schema_with_limits(cls, max_texts: int) -> dict[str, Any]:
        """The JSON schema, in one piece and with this server's limits."""
        schema = cls.model_json_schema()
        [parameters] = schema.pop("$defs").values()
        schema["properties"]["parameters"] = {"anyOf": [parameters, {"type": "null"}]}
        schema["properties"]["inputs"]["anyOf"][1] |= {"minItems": 1, "maxItems": max_texts}
        return schema

    @classmethod
    def _sentence(cls, error: ErrorDetails) -> str:
        """Our words for the errors that pydantic finds itself."""
        if error["type"] == _SENTENCE:
            return error["msg"]
        *path, name = error["loc"] or ("",)
        if error["type"] == "extra_forbidden":
            model, where = (cls.parameters_model, "parameters") if path else (cls, "the body")
            *others, last = model.model_fields
            allowed = f"{', '.join(others)} and {last}" if others else last
            verb = "are" if others else "is"
            return f"Unknown field {quote(str(name))} in {where}; allowed {verb} {allowed}."
        if error["type"] == "missing":
            return "inputs is missing; it must be a text or a list of texts."
        return f"{name or 'The body'} must be a JSON object."


def reading_of(info: ValidationInfo) -> Reading:
    """What `check` was given."""
    assert isinstance(info.context, Reading)  # noqa: S101 - `check` is the only way in
    return info.context


def sentence_error(sentence: str) -> PydanticCustomError:
    """To be raised by a validator whose sentence is for the caller."""
    return PydanticCustomError(_SENTENCE, "{sentence}", {"sentence": sentence})


def show(value: object) -> str:
    """A JSON value, short enough for a sentence; one that may be nested only by its kind."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value, ensure_ascii=False)[:MAX_QUOTED_CHARS]

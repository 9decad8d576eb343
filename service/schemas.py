"""Request and response bodies, and the limits on them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from service.bundle import Architecture
from service.errors import MAX_QUOTED_CHARS, InvalidRequestError, quote
from service.fill_mask import DEFAULT_TOP_K
from service.json_body import read_json
from service.ranking import NO_SINGLE_TOKEN, Fill, TargetFill

MAX_TARGETS = 10_000

# the type's own serializer is twice as fast as pydantic's for anything
_FILLS = TypeAdapter(list[Fill]).serializer
_TARGET_FILLS = TypeAdapter(list[TargetFill]).serializer
_SENTENCE = "sentence"  # type of the errors whose text is ours
_EXAMPLE: dict[str, JsonValue] = {
    "inputs": "Paris is the [MASK] of France.",
    "parameters": {"top_k": 5},
}


class Limits(BaseModel):
    """The most a request may hold."""

    model_config = ConfigDict(frozen=True)

    max_tokens: int = Field(description="tokens of one text, special tokens included")
    max_texts: int = Field(description="texts of one request")
    max_masks: int = Field(description="masks of one request, over all its texts")
    max_top_k: int = Field(description="fills a mask")
    max_passes: int = Field(description="texts computed for the targets of one request")
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


class Parameters(BaseModel):
    """How to rank; null is the same as nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_k: int | None = Field(
        default=None,
        ge=1,
        description=f"Fills a mask: {DEFAULT_TOP_K} by default, or all targets where given.",
    )
    targets: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TARGETS,
        description="Rank only these words or phrases, each given once and scored as a whole.",
    )

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        limits = _reading(info).limits
        # type(), not isinstance(): true is not a number
        if value is None or (type(value) is int and 1 <= value <= limits.max_top_k):
            return value
        raise _error(
            f"parameters.top_k must be a whole number from 1 to {limits.max_top_k}, "
            f"not {_show(value)}."
        )

    @field_validator("targets", mode="before")
    @classmethod
    def _check_targets(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        name = _reading(info).targets
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_TARGETS:
            raise _error(f"{name} must be a list of 1 to {MAX_TARGETS} texts.")
        seen = set()
        for index, target in enumerate(value):
            if not isinstance(target, str) or not target.strip():
                raise _error(f"{name}[{index}] must be a text that is not empty.")
            if target in seen:
                raise _error(f"The target {quote(target)} is given twice.")
            seen.add(target)
        return value


class FillMaskBody(BaseModel):
    """What to fill."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [_EXAMPLE]}
    )

    inputs: str | list[str] = Field(
        description="A text with at least one mask, or a list of such texts."
    )
    parameters: Parameters | None = None

    @field_validator("inputs", mode="before")
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        limits, name, _ = _reading(info)
        if not isinstance(value, str | list):
            raise _error(f"{name} must be a text or a list of texts.")
        if not value:
            raise _error(f"{name} is empty; it must be a text or a list of texts.")
        if isinstance(value, str):
            return value
        if len(value) > limits.max_texts:
            raise _error(
                f"{name} holds {len(value)} texts; at most {limits.max_texts} are allowed."
            )
        for index, text in enumerate(value):
            if not isinstance(text, str) or not text:
                raise _error(f"{name}[{index}] must be a text that is not empty.")
        return value

    @property
    def texts(self) -> list[str]:
        """The inputs, as a list even if there is only one."""
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs

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
            raise InvalidRequestError(_sentence(error.errors()[0])) from None

    @classmethod
    def schema_with_limits(cls, max_texts: int, max_top_k: int) -> dict[str, Any]:
        """The JSON schema, in one piece and with this server's limits."""
        schema = cls.model_json_schema()
        parameters = schema.pop("$defs")["Parameters"]
        schema["properties"]["parameters"] = {"anyOf": [parameters, {"type": "null"}]}
        parameters["properties"]["top_k"]["anyOf"][0]["maximum"] = max_top_k
        schema["properties"]["inputs"]["anyOf"][1] |= {"minItems": 1, "maxItems": max_texts}
        return schema


class FillBody(BaseModel):
    """One fill of one mask."""

    score: float = Field(description="probability over the whole vocabulary")
    token: int = Field(
        description=f"id of the token; {NO_SINGLE_TOKEN} for a target of several tokens"
    )
    token_str: str = Field(description="the token as text")
    sequence: str = Field(description="the text with this mask filled")
    log_prob: float | None = Field(
        default=None, description="with targets: logarithm of the score, in nats"
    )
    target_score: float | None = Field(
        default=None, description="with targets: probability among them alone"
    )
    tokens: list[int] | None = Field(default=None, description="with targets: ids of its tokens")


class FillMaskAnswer(RootModel[list[FillBody] | list[list[FillBody]] | list[list[list[FillBody]]]]):
    """Fills, best first: one list, or one a mask for several masks; one of those a text."""


class ErrorBody(BaseModel):
    """Why there is no answer."""

    error: str = Field(description="one sentence: what, where, what is allowed")


class StatusBody(BaseModel):
    """What the service says of its health."""

    status: str


class InfoBody(BaseModel):
    """The model that is served, and the limits."""

    name: str
    license: str
    description: str
    mask_token: str
    limits: Limits
    precision: str
    architecture: Architecture
    version: str = Field(description="of the service")
    threads: int = Field(description="texts that are computed at the same time")


def answer_json(fills: Sequence[Sequence[Sequence[Fill]]], *, single: bool) -> bytes:
    """The body of an answer, nested as Hugging Face does.

    Args:
        fills: for each text, for each mask.
        single: the request was one text, not a list.
    """
    # a mask at a time: to write a large answer in one go would hold up all other threads
    texts = [_nest([_fills_json(mask) for mask in text], flat=len(text) == 1) for text in fills]
    content = _nest(texts, flat=single)
    # so a number that is none is written; in a text its quotes would be escaped
    if b'"score":null' in content:
        raise ValueError("the model has answered with what is not a number")
    return content


def _fills_json(fills: Sequence[Fill]) -> bytes:
    of_targets = fills and isinstance(fills[0], TargetFill)
    return (_TARGET_FILLS if of_targets else _FILLS).to_json(fills)


def _nest(parts: list[bytes], *, flat: bool) -> bytes:
    return parts[0] if flat else b"[%b]" % b",".join(parts)


def _reading(info: ValidationInfo) -> Reading:
    assert isinstance(info.context, Reading)  # noqa: S101 - `check` is the only way in
    return info.context


def _error(sentence: str) -> PydanticCustomError:
    return PydanticCustomError(_SENTENCE, "{sentence}", {"sentence": sentence})


def _show(value: object) -> str:
    """A JSON value, short enough for a sentence; one that may be nested only by its kind."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value, ensure_ascii=False)[:MAX_QUOTED_CHARS]


def _sentence(error: ErrorDetails) -> str:
    """Our words for the errors that pydantic finds itself."""
    if error["type"] == _SENTENCE:
        return error["msg"]
    *path, name = error["loc"] or ("",)
    if error["type"] == "extra_forbidden":
        model, where = (Parameters, "parameters") if path else (FillMaskBody, "the body")
        allowed = " and ".join(model.model_fields)
        return f"Unknown field {quote(str(name))} in {where}; allowed are {allowed}."
    if error["type"] == "missing":
        return "inputs is missing; it must be a text or a list of texts."
    return f"{name or 'The body'} must be a JSON object."

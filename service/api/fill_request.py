"""The body of a request for fills."""

from typing import Any, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from service.api.request_body import (
    TextsRequest,
    client_error,
    describe,
    integer_of,
    validation_context,
)
from service.errors import quote
from service.tasks.options import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    MAX_WORD_TOKENS,
    FillOptions,
    Granularity,
    OnLongText,
    Order,
    Strategy,
)

MAX_TARGETS = 10_000

_CHOICES: dict[str, tuple[str, ...]] = {
    "granularity": get_args(Granularity),
    "strategy": get_args(Strategy),
    "order": get_args(Order),
    "on_long_text": get_args(OnLongText),
}


class FillParameters(BaseModel):
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

    granularity: Granularity | None = Field(
        default=None, description="token (the default), or word: whole words of several tokens too."
    )
    max_word_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_WORD_TOKENS,
        description=f"Most tokens of a word, {DEFAULT_WORD_TOKENS} by default.",
    )
    strategy: Strategy | None = Field(
        default=None,
        description="independent (the default): each mask alone; joint: all masks of a text "
        "together.",
    )
    order: Order | None = Field(
        default=None,
        description="In which masks are filled together: confidence (the default), the most "
        "certain first, or left_to_right.",
    )

    on_long_text: OnLongText | None = Field(
        default=None,
        description="error (the default), or window: the model sees as much as it reads around "
        "the masks, and each fill says which part of the text that was.",
    )

    @field_validator("granularity", "strategy", "order", "on_long_text", mode="before")
    @classmethod
    def _check_choice(cls, value: object, info: ValidationInfo) -> object:
        allowed = _CHOICES[info.field_name or ""]
        if value is None or value in allowed:
            return value
        name = f"{validation_context(info).parameters}.{info.field_name}"
        raise client_error(f"{name} must be {' or '.join(allowed)}, not {describe(value)}.")

    @field_validator("max_word_tokens", mode="before")
    @classmethod
    def _check_max_word_tokens(cls, value: object, info: ValidationInfo) -> object:
        return _whole_number(value, MAX_WORD_TOKENS, info)

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        return _whole_number(value, validation_context(info).limits.max_top_k, info)

    @field_validator("targets", mode="before")
    @classmethod
    def _check_targets(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        reading = validation_context(info)
        name = reading.targets or f"{reading.parameters}.targets"
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_TARGETS:
            raise client_error(f"{name} must be a list of 1 to {MAX_TARGETS} texts.")
        seen = set()
        for index, target in enumerate(value):
            if not isinstance(target, str) or not target.strip():
                raise client_error(f"{name}[{index}] must be a text that is not empty.")
            if target in seen:
                raise client_error(f"The target {quote(target)} is given twice.")
            seen.add(target)
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        chosen = [
            name
            for name, given in (
                ("targets", self.targets is not None),
                ('granularity "word"', self.granularity == "word"),
                ('strategy "joint"', self.strategy == "joint"),
            )
            if given
        ]
        if len(chosen) > 1:
            raise client_error(f"{chosen[0]} and {chosen[1]} cannot be asked for together.")
        return self

    @property
    def options(self) -> FillOptions:
        """As the use case takes them."""
        given = {name: value for name, value in dict(self).items() if value is not None}
        if self.targets is not None:
            given["targets"] = tuple(self.targets)
        return FillOptions(**given)


def _whole_number(value: object, most: int, info: ValidationInfo) -> object:
    number = integer_of(value)
    if value is None or (number is not None and 1 <= number <= most):
        return number
    name = f"{validation_context(info).parameters}.{info.field_name}"
    raise client_error(f"{name} must be a whole number from 1 to {most}, not {describe(value)}.")


NOT_BLANK = r"\S"  # at least one character that is no white space
_DEFAULTS = FillOptions()
_EXAMPLE: dict[str, JsonValue] = {
    "inputs": "Paris is the [MASK] of France.",
    "parameters": {"top_k": 5},
}


class FillMaskRequest(TextsRequest):
    """What to fill."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})
    parameters_model = FillParameters

    inputs: str | list[str] = Field(
        description="A text with at least one mask, or a list of such texts."
    )
    parameters: FillParameters | list[FillParameters] | None = None

    @property
    def options(self) -> FillOptions | list[FillOptions]:
        """How to fill all the texts, or each."""
        if isinstance(self.parameters, list):
            return [one.options for one in self.parameters]
        return self.parameters.options if self.parameters else _DEFAULTS

    @classmethod
    def schema_with_limits(cls, max_texts: int, max_top_k: int = 1) -> dict[str, Any]:
        """The JSON schema, in one piece and with this server's limits."""
        schema = super().schema_with_limits(max_texts)
        # a list of parameters has the same object
        parameters = schema["properties"]["parameters"]["anyOf"][0]
        parameters["properties"]["top_k"]["anyOf"][0]["maximum"] = max_top_k
        targets = parameters["properties"]["targets"]["anyOf"][0]
        targets |= {"items": {"type": "string", "pattern": NOT_BLANK}, "uniqueItems": True}
        return schema

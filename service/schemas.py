"""Request and response bodies, and the limits on them."""

from collections.abc import Sequence
from typing import Any, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    TypeAdapter,
    ValidationInfo,
    field_validator,
    model_validator,
)

from service.body import Limits, TextsBody, reading_of, sentence_error, show
from service.bundle import Architecture
from service.errors import quote
from service.fill_options import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    MAX_WORD_TOKENS,
    FillOptions,
    Granularity,
    OnLongText,
    Order,
    Strategy,
)
from service.joint_fills import JointFill
from service.ranking import NO_SINGLE_TOKEN, Fill, TargetFill
from service.word_fills import WordFill

MAX_TARGETS = 10_000

# the type's own serializer is twice as fast as pydantic's for anything
_SERIALIZERS = {
    Fill: TypeAdapter(list[Fill]).serializer,
    TargetFill: TypeAdapter(list[TargetFill]).serializer,
    WordFill: TypeAdapter(list[WordFill]).serializer,
    JointFill: TypeAdapter(list[JointFill]).serializer,
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "granularity": get_args(Granularity),
    "strategy": get_args(Strategy),
    "order": get_args(Order),
    "on_long_text": get_args(OnLongText),
}
_DEFAULTS = FillOptions()
_EXAMPLE: dict[str, JsonValue] = {
    "inputs": "Paris is the [MASK] of France.",
    "parameters": {"top_k": 5},
}


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
        words = " or ".join(allowed)
        raise sentence_error(f"parameters.{info.field_name} must be {words}, not {show(value)}.")

    @field_validator("max_word_tokens", mode="before")
    @classmethod
    def _check_max_word_tokens(cls, value: object) -> object:
        if value is None or (type(value) is int and 1 <= value <= MAX_WORD_TOKENS):
            return value
        raise sentence_error(
            f"parameters.max_word_tokens must be a whole number from 1 to {MAX_WORD_TOKENS}, "
            f"not {show(value)}."
        )

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        limits = reading_of(info).limits
        # type(), not isinstance(): true is not a number
        if value is None or (type(value) is int and 1 <= value <= limits.max_top_k):
            return value
        raise sentence_error(
            f"parameters.top_k must be a whole number from 1 to {limits.max_top_k}, "
            f"not {show(value)}."
        )

    @field_validator("targets", mode="before")
    @classmethod
    def _check_targets(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        name = reading_of(info).targets
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_TARGETS:
            raise sentence_error(f"{name} must be a list of 1 to {MAX_TARGETS} texts.")
        seen = set()
        for index, target in enumerate(value):
            if not isinstance(target, str) or not target.strip():
                raise sentence_error(f"{name}[{index}] must be a text that is not empty.")
            if target in seen:
                raise sentence_error(f"The target {quote(target)} is given twice.")
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
            raise sentence_error(f"{chosen[0]} and {chosen[1]} cannot be asked for together.")
        return self

    @property
    def options(self) -> FillOptions:
        """As the use case takes them."""
        return FillOptions(**{k: v for k, v in dict(self).items() if v is not None})


class FillMaskBody(TextsBody):
    """What to fill."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})
    parameters_model = Parameters

    inputs: str | list[str] = Field(
        description="A text with at least one mask, or a list of such texts."
    )
    parameters: Parameters | None = None

    @property
    def options(self) -> FillOptions:
        """How to fill."""
        return self.parameters.options if self.parameters else _DEFAULTS

    @classmethod
    def schema_with_limits(cls, max_texts: int, max_top_k: int = 1) -> dict[str, Any]:
        """The JSON schema, in one piece and with this server's limits."""
        schema = super().schema_with_limits(max_texts)
        parameters = schema["properties"]["parameters"]["anyOf"][0]
        parameters["properties"]["top_k"]["anyOf"][0]["maximum"] = max_top_k
        return schema


class FillBody(BaseModel):
    """One fill of one mask."""

    score: float = Field(description="probability over the whole vocabulary")
    token: int = Field(
        description=f"id of the token; {NO_SINGLE_TOKEN} where the fill is several tokens"
    )
    token_str: str = Field(description="the token as text")
    sequence: str = Field(description="the text with this mask filled")
    log_prob: float | None = Field(
        default=None,
        description="with targets, words or masks filled together: logarithm of the score, in nats",
    )
    target_score: float | None = Field(
        default=None, description="with targets: probability among them alone"
    )
    tokens: list[int] | None = Field(
        default=None, description="with the same: ids of its tokens, or of each mask's"
    )
    window: tuple[int, int] | None = Field(
        default=None, description="the part of a long text that the model saw, in characters"
    )
    token_strs: list[str] | None = Field(
        default=None, description="with masks filled together: the token of each as text"
    )


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
    return _SERIALIZERS[type(fills[0]) if fills else Fill].to_json(fills, exclude_none=True)


def _nest(parts: list[bytes], *, flat: bool) -> bytes:
    return parts[0] if flat else b"[%b]" % b",".join(parts)

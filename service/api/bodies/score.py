"""Request and response bodies of /score."""

from collections.abc import Sequence
from typing import Annotated, Self, get_args

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

from service.api.bodies.json_schema import never_null
from service.api.bodies.request_body import (
    ErrorResponse,
    TextsRequest,
    check_choice,
    validation_context,
)
from service.api.bodies.values import client_error, describe, integer_of
from service.errors import InvalidRequestError
from service.tasks.results import RejectedText
from service.tasks.score_plan import DEFAULT_VARIANT, Part, ScoreOptions, Variant
from service.tasks.scoring import TextScore
from service.tokenization.encoded_text import InputText

_CHOICES: dict[str, tuple[str, ...]] = {"variant": get_args(Variant), "part": get_args(Part)}
_SCORES = TypeAdapter(list[TextScore | RejectedText]).serializer
_SCORE = TypeAdapter(TextScore).serializer
_EXAMPLES: list[JsonValue] = [
    {"inputs": ["The capital of France is Paris.", "The capital of France is Rome."]},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
    {
        "inputs": ["The capital of France is Paris.", "The capital of France is Rome."],
        "parameters": {"prefix": "The capital of France is"},
    },
]


class ScoreParameters(BaseModel):
    """Parameters of a score request. A null has the same meaning as a missing field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: Variant | None = Field(
        default=None,
        description=f"With {DEFAULT_VARIANT} (the default), the model predicts a token without the "
        "later tokens of its word. With original, the model sees all other tokens of the text.",
    )
    prefix: str | None = Field(
        default=None,
        description="First characters of the text, which are only context. The response has the "
        "scores of the tokens after these characters.",
    )
    span: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="Start and end of the part of the text to score, in characters. The rest of "
        "the text is only context. The response has the scores of the tokens in the span.",
    )
    part: Part | None = Field(
        default=None,
        description="Part of a pair to score. The other part is only context. For a pair, `prefix` "
        "and `span` apply to this part.",
    )

    @field_validator("variant", "part", mode="before")
    @classmethod
    def _check_choice(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _CHOICES[info.field_name or ""], info)

    @field_validator("prefix", mode="before")
    @classmethod
    def _check_prefix(cls, value: object, info: ValidationInfo) -> object:
        if value is None or isinstance(value, str):
            return value
        name = f"{validation_context(info).parameters}.prefix"
        raise client_error(f"{name} must be a text (got {describe(value)}).")

    @field_validator("span", mode="before")
    @classmethod
    def _check_span(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            return value
        name = f"{validation_context(info).parameters}.span"
        span = [integer_of(one) for one in value[:3]] if isinstance(value, list) else []
        numbers = [one for one in span if one is not None and one >= 0]
        if len(span) != 2 or len(numbers) != 2:
            raise client_error(
                f"{name} must be [start, end] with two whole numbers of at least 0 "
                f"(got {_describe_span(value)})."
            )
        if numbers[0] >= numbers[1]:
            raise client_error(f"The start of {name} must be less than its end (got {numbers}).")
        return numbers

    @model_validator(mode="after")
    def _check_together(self, info: ValidationInfo) -> Self:
        if self.span is not None and self.prefix is not None:
            name = validation_context(info).parameters
            raise client_error(f"{name}.span and {name}.prefix exclude each other; choose one.")
        return self

    @property
    def options(self) -> ScoreOptions:
        """Parameters in the form that the scoring pipeline reads."""
        span = None if self.span is None else (self.span[0], self.span[1])
        return ScoreOptions(self.variant or DEFAULT_VARIANT, span, self.prefix, self.part)


def _describe_span(value: object) -> str:
    """Return the start of a JSON value, also of a list."""
    if isinstance(value, list):
        return f"[{', '.join(map(describe, value[:3]))}{', …' if len(value) > 3 else ''}]"
    return describe(value)


class ScoreRequest(TextsRequest):
    """A request to score the tokens of one or more texts."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})
    parameters_model = ScoreParameters

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts without masks, or a list of these."
    )
    parameters: ScoreParameters | list[ScoreParameters] | None = None

    @property
    def options(self) -> list[ScoreOptions]:
        """Options of each text."""
        return [parameters.options for parameters in self.parameters_of_texts]


class TokenScoreBody(BaseModel):
    """The score of a token."""

    token: int = Field(description="Id of the token.")
    token_str: str = Field(description="The token as text.")
    start: int = Field(
        description="Index of the token's first character in the text, or in its part of a pair."
    )
    end: int = Field(description="Index after the token's last character.")
    log_prob: float = Field(
        description="Log-probability given the tokens that the model sees, in nats."
    )
    surprisal: float = Field(description="Minus log2 of the probability, in bits.")
    part: Part | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Part of the pair that contains the token. Only tokens of pairs have this "
        "field.",
    )


class TextScoreBody(BaseModel):
    """The scores of one text."""

    log_prob: float = Field(
        description="Pseudo-log-likelihood, the sum of the tokens' log-probabilities, in nats."
    )
    pseudo_perplexity: float = Field(
        description="Exponential of minus the mean log-probability of the tokens."
    )
    rank: int = Field(
        description="Rank among the texts of the request. The most probable text has rank 1."
    )
    tokens: list[TokenScoreBody] = Field(
        description="Scores of the scored tokens in order, without special tokens."
    )


class ScoreResponse(RootModel[TextScoreBody | list[TextScoreBody | ErrorResponse]]):
    """The scores of one text, or a list with the scores of each text."""


def scores_to_json(scores: Sequence[TextScore | RejectedText], *, single: bool) -> bytes:
    """Return the response body.

    Args:
        single: true if the request has one text instead of a list.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    if single and isinstance(scores[0], RejectedText):
        raise InvalidRequestError(scores[0].error)
    serializer, value = (_SCORE, scores[0]) if single else (_SCORES, scores)
    content = serializer.to_json(value, exclude_none=True)
    if b'"log_prob":null' in content:  # pydantic writes NaN as null
        raise ValueError("the model returns NaN or infinity; export its bundle again")
    return content

"""Request and response bodies of /score."""

from collections.abc import Sequence

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

from service.api.bodies.json_schema import never_null
from service.api.bodies.request_body import (
    ErrorResponse,
    TextsRequest,
    check_choice,
)
from service.errors import InvalidRequestError
from service.tasks.results import RejectedText
from service.tasks.scoring import DEFAULT_VARIANT, Part, TextScore, Variant
from service.tokenization.encoded_text import InputText

_VARIANTS: tuple[Variant, ...] = ("within_word", "original")
_SCORES = TypeAdapter(list[TextScore | RejectedText]).serializer
_SCORE = TypeAdapter(TextScore).serializer
_EXAMPLES: list[JsonValue] = [
    {"inputs": ["The capital of France is Paris.", "The capital of France is Rome."]},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
]


class ScoreParameters(BaseModel):
    """Parameters of a score request. A null has the same meaning as a missing field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: Variant | None = Field(
        default=None,
        description=f"With {DEFAULT_VARIANT} (the default), the model predicts a token without the "
        "later tokens of its word. With original, the model sees all other tokens of the text.",
    )

    @field_validator("variant", mode="before")
    @classmethod
    def _check_variant(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _VARIANTS, info)


class ScoreRequest(TextsRequest):
    """A request to score the tokens of one or more texts."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})
    parameters_model = ScoreParameters

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts without masks, or a list of these."
    )
    parameters: ScoreParameters | list[ScoreParameters] | None = None

    @property
    def variants(self) -> list[Variant]:
        """Scoring variant of each text."""
        return [parameters.variant or DEFAULT_VARIANT for parameters in self.parameters_of_texts]


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
    tokens: list[TokenScoreBody]


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

"""Request and response bodies of /score."""

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from fillmask.api.bodies.request_body import ErrorResponse, TextsRequest
from fillmask.api.bodies.schema import never_null
from fillmask.parameters.score import Part, ScoreParameters
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import described

_EXAMPLES: list[JsonValue] = [
    {"inputs": ["The capital of France is Paris.", "The capital of France is Rome."]},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
    {
        "inputs": ["The capital of France is Paris.", "The capital of France is Rome."],
        "parameters": {"prefix": "The capital of France is"},
    },
    {"inputs": "The dog barked.", "parameters": {"targets": ["the", "a"]}},
]


class ScoreRequest(TextsRequest):
    """A request to score the tokens of one or more texts."""

    model_config = ConfigDict(json_schema_extra=described(*_EXAMPLES))
    parameters_model = ScoreParameters

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts without masks, or a list of these."
    )
    parameters: ScoreParameters | list[ScoreParameters] | None = None


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
    target_log_probs: list[float] | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Log-probability of each target in place of the token, in nats. Only with "
        "targets.",
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

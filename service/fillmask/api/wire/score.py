"""Request and response bodies of /score."""

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from fillmask.api.request_body import ErrorResponse, TextsRequest
from fillmask.api.schema import fields_of
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import described
from fillmask.tasks.score.parameters import ScoreParameters
from fillmask.tasks.score.results import TextScore, TokenScore

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


@fields_of(TokenScore)
class TokenScoreBody(BaseModel):
    """The score of a token."""


@fields_of(TextScore)
class TextScoreBody(BaseModel):
    """The scores of one text."""

    tokens: list[TokenScoreBody] = Field(
        description="Scores of the scored tokens in order, without special tokens."
    )


class ScoreResponse(RootModel[TextScoreBody | list[TextScoreBody | ErrorResponse]]):
    """The scores of one text, or a list with the scores of each text."""

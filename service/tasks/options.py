"""Options of a fill-mask request, and the limits that requests are checked against."""

from dataclasses import dataclass
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)


class Limits(BaseModel):
    """Maximum sizes of a request."""

    model_config = ConfigDict(frozen=True)

    max_tokens: int = Field(description="tokens of one text, special tokens included")
    max_texts: int = Field(description="texts of one request")
    max_masks: int = Field(description="masks of one request, over all its texts")
    max_top_k: int = Field(description="fills per mask")
    max_passes: int = Field(
        description="passes of the model for the scores or targets of one request"
    )
    max_body_bytes: int = Field(description="bytes of a request's body")


Granularity = Literal["token", "word"]
Strategy = Literal["independent", "joint"]
Order = Literal["confidence", "left_to_right"]
OnLongText = Literal["error", "window"]

DEFAULT_TOP_K = 5
DEFAULT_WORD_TOKENS = 3
MAX_WORD_TOKENS = 5


@dataclass(frozen=True, slots=True)
class FillOptions:
    """Options that decide how the masks of a text are filled.

    Attributes:
        top_k: maximum number of fills per mask; None means all targets, or DEFAULT_TOP_K without
            targets.
        targets: the only words to rank; None ranks the whole vocabulary without its special
            tokens.
        granularity: a fill is one token, or a whole word.
        max_word_tokens: maximum length of a word, in tokens.
        strategy: masks of one text are filled independently or jointly.
        order: order in which the joint strategy fills masks.
        on_long_text: a text longer than the model's input is an error, or the model reads windows
            around its masks.
    """

    top_k: int | None = None
    targets: tuple[str, ...] | None = None
    granularity: Granularity = "token"
    max_word_tokens: int = DEFAULT_WORD_TOKENS
    strategy: Strategy = "independent"
    order: Order = "confidence"
    on_long_text: OnLongText = "error"

"""How masks are to be filled."""

from dataclasses import dataclass
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)


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


Granularity = Literal["token", "word"]
Strategy = Literal["independent", "joint"]
Order = Literal["confidence", "left_to_right"]
OnLongText = Literal["error", "window"]

DEFAULT_TOP_K = 5
DEFAULT_WORD_TOKENS = 3
MAX_WORD_TOKENS = 5


@dataclass(frozen=True, slots=True)
class FillOptions:
    """How masks are to be filled.

    Attributes:
        top_k: most fills a mask; None for all the targets, or else for DEFAULT_TOP_K.
        targets: the only words to rank, where given; or else the whole vocabulary without its
            special tokens.
        granularity: whether a fill is a token or a whole word.
        max_word_tokens: most tokens of a word.
        strategy: whether the masks of a text are filled each alone or together.
        order: in which they are filled together.
        on_long_text: whether a text that is longer than the model reads is an error, or is seen
            through windows around its masks.
    """

    top_k: int | None = None
    targets: tuple[str, ...] | None = None
    granularity: Granularity = "token"
    max_word_tokens: int = DEFAULT_WORD_TOKENS
    strategy: Strategy = "independent"
    order: Order = "confidence"
    on_long_text: OnLongText = "error"

"""Options of fill-mask requests and limits of all requests."""

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

    max_tokens: int = Field(
        description="Maximum number of tokens of one text, including special tokens."
    )
    max_texts: int = Field(description="Maximum number of texts of one request.")
    max_masks: int = Field(description="Maximum number of masks in all texts of one request.")
    max_top_k: int = Field(description="Maximum number of fills per mask.")
    max_passes: int = Field(
        description="Maximum number of passes for one request. Plain fills do not count."
    )
    max_body_bytes: int = Field(description="Maximum number of bytes of a request body.")


Granularity = Literal["token", "word"]
Strategy = Literal["independent", "joint"]
Order = Literal["confidence", "left_to_right"]
OnLongText = Literal["error", "window"]

DEFAULT_TOP_K = 5
DEFAULT_WORD_TOKENS = 3
MAX_WORD_TOKENS = 5


@dataclass(frozen=True, slots=True)
class FillOptions:
    """Options for filling the masks of a text.

    Attributes:
        top_k: maximum number of fills per mask. None means all targets, or DEFAULT_TOP_K without
            targets.
        targets: the only words and phrases to rank. None means all tokens of the vocabulary except
            special tokens.
        granularity: unit of a fill, a token or a whole word.
        max_word_tokens: maximum length of a whole word in tokens, for the granularity word.
        strategy: strategy for several masks of one text, independent or joint.
        order: order in which the joint strategy fills the masks.
        on_long_text: policy for texts that exceed the model's input, either an error or windows
            around the masks.
    """

    top_k: int | None = None
    targets: tuple[str, ...] | None = None
    granularity: Granularity = "token"
    max_word_tokens: int = DEFAULT_WORD_TOKENS
    strategy: Strategy = "independent"
    order: Order = "confidence"
    on_long_text: OnLongText = "error"

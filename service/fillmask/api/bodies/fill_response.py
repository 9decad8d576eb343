"""The response body of /fill-mask."""

from typing import Annotated

from pydantic import BaseModel, Field, RootModel

from fillmask.api.bodies.request_body import ErrorResponse
from fillmask.api.bodies.schema import never_null
from fillmask.results.fills import NO_SINGLE_TOKEN


class FillBody(BaseModel):
    """A fill of a mask, with its score."""

    score: float = Field(description="Probability over the whole vocabulary.")
    token: int = Field(
        description=f"Id of the token. Fills of several tokens have {NO_SINGLE_TOKEN}."
    )
    token_str: str = Field(description="The fill as text.")
    sequence: str = Field(
        description="The text with the fill in place of the mask. A joint fill replaces all masks."
    )
    log_prob: float | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Logarithm of the score, in nats. Only fills with targets, words or joint "
        "filling have this field.",
    )
    target_score: float | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Probability among the targets. Only fills with targets have this field.",
    )
    tokens: list[int] | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Ids of the fill's tokens. With joint filling, each mask has one id. Only "
        "fills with targets, words or joint filling have this field.",
    )
    window: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Start and end of the part of a long text that the model reads, in characters.",
    )
    token_strs: list[str] | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Token of each mask, as text. Only joint fills have this field.",
    )


class RejectedTargetBody(BaseModel):
    """An invalid target. With on_error "report", invalid targets follow the fills of a mask."""

    token_str: str = Field(description="The target as in the request.")
    error: str = Field(description="Description of the problem and of its solution.")


class MaskFills(RootModel[list[FillBody | RejectedTargetBody]]):
    """The fills of one mask, best first."""


class FillMaskResponse(RootModel[MaskFills | list[MaskFills | list[MaskFills] | ErrorResponse]]):
    """Fills, best first.

    A text with several masks has one list per mask. With joint filling, every text has a single
    list. A list of texts has one list per text.
    """

"""The response body of /fill-mask."""

from typing import Annotated

from pydantic import BaseModel, Field, RootModel

from fillmask.api.request_body import ErrorResponse
from fillmask.api.schema import fields_of, never_null
from fillmask.tasks.fill_mask.results import Fill, JointFill, RejectedTarget, TargetFill


@fields_of(Fill, TargetFill, JointFill)
class FillBody(BaseModel):
    """A fill of a mask, with its score."""

    window: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        json_schema_extra=never_null,
        description="Start and end of the part of a long text that the model reads, in characters.",
    )


@fields_of(RejectedTarget)
class RejectedTargetBody(BaseModel):
    """An invalid target. With on_error "report", invalid targets follow the fills of a mask."""


class MaskFills(RootModel[list[FillBody | RejectedTargetBody]]):
    """The fills of one mask, best first."""


class FillMaskResponse(RootModel[MaskFills | list[MaskFills | list[MaskFills] | ErrorResponse]]):
    """Fills, best first.

    A text with several masks has one list per mask. With joint filling, every text has a single
    list. A list of texts has one list per text.
    """

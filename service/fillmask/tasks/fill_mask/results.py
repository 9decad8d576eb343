"""Fills of masks, and errors of invalid targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, Field, RootModel, TypeAdapter

from fillmask.arrays import check_finite
from fillmask.tasks.result import ErrorResponse, Result, fields_of, json_list, never_null

# value of `token` in a fill of several tokens, a number because clients expect a number
NO_SINGLE_TOKEN = -1


@dataclass(frozen=True, slots=True)
class Fill(Result):
    """A fill of one mask."""

    score: Annotated[float, Field(description="Probability over the whole vocabulary.")]
    token: Annotated[
        int,
        Field(description=f"Id of the token. Fills of several tokens have {NO_SINGLE_TOKEN}."),
    ]
    token_str: Annotated[str, Field(description="The fill as text.")]
    sequence: Annotated[
        str,
        Field(
            description="The text with the fill in place of the mask. A joint fill replaces all "
            "masks."
        ),
    ]
    window: Annotated[
        tuple[int, int] | None,
        Field(
            description="Start and end of the part of a long text that the model reads, in "
            "characters."
        ),
    ] = None


_LogProb = Annotated[
    float,
    Field(
        description="Logarithm of the score, in nats. Only fills with targets, words or joint "
        "filling have this field."
    ),
]
_Tokens = Annotated[
    tuple[int, ...],
    Field(
        description="Ids of the fill's tokens. With joint filling, each mask has one id. Only "
        "fills with targets, words or joint filling have this field."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFill(Fill):
    """A target as the fill of one mask."""

    log_prob: _LogProb
    target_score: Annotated[
        float,
        Field(
            description="Probability among the targets. Only fills with targets have this field."
        ),
    ]
    tokens: _Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFill(Fill):
    """A joint fill of all masks of a text. `token_str` joins the texts of `token_strs`."""

    log_prob: _LogProb
    tokens: _Tokens
    token_strs: Annotated[
        tuple[str, ...],
        Field(description="Token of each mask, as text. Only joint fills have this field."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFill(Fill):
    """A word as the fill of one mask."""

    log_prob: _LogProb
    tokens: _Tokens


# types of all fields that a fill may have, by name; the order is that of the columns of a file
FILL_FIELDS: dict[str, Any] = get_type_hints(TargetFill) | get_type_hints(JointFill)
FILL_FIELDS["window"] = FILL_FIELDS.pop("window")


@dataclass(frozen=True, slots=True)
class RejectedTarget(Result):
    """An invalid target. With on_error "report", invalid targets follow the fills of a mask."""

    token_str: Annotated[str, Field(description="The target as in the request.")]
    error: Annotated[str, Field(description="Description of the problem and of its solution.")]


@dataclass(frozen=True, slots=True)
class TextFills:
    """The fills of one text.

    Attributes:
        masks: fills of each mask, best first. The joint strategy has one list for all masks.
        rejected: rejected targets.
    """

    masks: Sequence[Sequence[Fill]]
    rejected: Sequence[RejectedTarget] = ()

    def nested(self) -> list[Any]:
        """Return the fills as in Hugging Face's API.

        A text with one list of fills has no list around it. Rejected targets follow the fills of
        each mask.
        """
        masks = [[*fills, *self.rejected] for fills in self.masks]
        return masks[0] if len(masks) == 1 else masks


# a serializer for one type is twice as fast as pydantic's serializer for any type
_SERIALIZERS = {
    Fill: TypeAdapter(list[Fill]).serializer,
    TargetFill: TypeAdapter(list[TargetFill]).serializer,
    WordFill: TypeAdapter(list[WordFill]).serializer,
    JointFill: TypeAdapter(list[JointFill]).serializer,
}
_REJECTED_TARGETS = TypeAdapter(Sequence[RejectedTarget]).serializer


def fills_to_json(result: TextFills) -> list[bytes]:
    """Return the JSON of a text's fills, nested as in Hugging Face's API, in parts."""
    # one mask per call, because a single call for a large result blocks all other threads
    masks = [_fills_json(mask, result.rejected) for mask in result.masks]
    return masks if len(masks) == 1 else json_list([mask] for mask in masks)


def _fills_json(fills: Sequence[Fill], rejected: Sequence[RejectedTarget]) -> bytes:
    content = _SERIALIZERS[type(fills[0]) if fills else Fill].to_json(fills, exclude_none=True)
    # Pydantic writes NaN as null. No text contains these bytes, because pydantic escapes quotes.
    if b'"score":null' in content:
        check_finite([fill.score for fill in fills])
    return content[:-1] + b"," + _REJECTED_TARGETS.to_json(rejected)[1:] if rejected else content


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

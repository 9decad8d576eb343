"""The response body of /fill-mask."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BaseModel, Field, RootModel, TypeAdapter

from service.api.bodies.json_schema import never_null
from service.api.bodies.request_body import ErrorResponse
from service.errors import InvalidRequestError
from service.tasks.results import (
    NO_SINGLE_TOKEN,
    Fill,
    FillResult,
    JointFill,
    RejectedTarget,
    RejectedText,
    TargetFill,
    WordFill,
)

# a serializer for one type is twice as fast as pydantic's serializer for any type
_SERIALIZERS = {
    Fill: TypeAdapter(list[Fill]).serializer,
    TargetFill: TypeAdapter(list[TargetFill]).serializer,
    WordFill: TypeAdapter(list[WordFill]).serializer,
    JointFill: TypeAdapter(list[JointFill]).serializer,
}
_REJECTED_TEXT = TypeAdapter(RejectedText).serializer
_REJECTED_TARGETS = TypeAdapter(Sequence[RejectedTarget]).serializer


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


def fills_to_json(result: FillResult, *, single: bool) -> bytes:
    """Return the response body, nested as in Hugging Face's API.

    Args:
        single: true if the request has one text instead of a list.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    return b"".join(response_parts(result, single=single))


def response_parts(result: FillResult, *, single: bool) -> list[bytes]:
    """Return the response body in parts.

    The caller joins the parts once, because each join copies all bytes.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    texts: list[list[bytes]] = []
    for index, text in enumerate(result.fills):
        if index in result.rejected_texts:
            rejected = result.rejected_texts[index]
            if single:
                raise InvalidRequestError(rejected.error)
            texts.append([_REJECTED_TEXT.to_json(rejected)])
            continue
        targets = result.rejected_targets.get(index)
        # one mask per call, because a single call for a large result blocks all other threads
        masks = [_fills_json(mask, targets) for mask in text]
        texts.append(masks if len(masks) == 1 else _list_parts([mask] for mask in masks))
    return texts[0] if single else _list_parts(texts)


def _fills_json(fills: Sequence[Fill], rejected: Sequence[RejectedTarget] | None) -> bytes:
    content = _SERIALIZERS[type(fills[0]) if fills else Fill].to_json(fills, exclude_none=True)
    # Pydantic writes NaN as null. No text contains these bytes, because pydantic escapes quotes.
    if b'"score":null' in content:
        raise ValueError("the model returns NaN or infinity; export its bundle again")
    return content[:-1] + b"," + _REJECTED_TARGETS.to_json(rejected)[1:] if rejected else content


def _list_parts(items: Iterable[list[bytes]]) -> list[bytes]:
    """Return the parts of a JSON list from the parts of its items."""
    parts = []
    for item in items:
        parts += [b",", *item]
    return [b"[", *parts[1:], b"]"]

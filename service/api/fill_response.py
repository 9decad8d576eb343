"""The response body of /fill-mask."""

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, Field, RootModel, TypeAdapter

from service.api.request_body import ErrorResponse
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
    """One fill of one mask."""

    score: float = Field(description="probability over the whole vocabulary")
    token: int = Field(
        description=f"id of the token; {NO_SINGLE_TOKEN} if the fill has several tokens"
    )
    token_str: str = Field(description="the token as text")
    sequence: str = Field(description="the text with this mask filled")
    log_prob: float | None = Field(
        default=None,
        description="logarithm of the score, in nats; only with targets, words or joint filling",
    )
    target_score: float | None = Field(
        default=None, description="probability among the targets; only with targets"
    )
    tokens: list[int] | None = Field(
        default=None,
        description="ids of the fill's tokens, or of the token of each mask; only with targets, "
        "words or joint filling",
    )
    window: tuple[int, int] | None = Field(
        default=None,
        description="start and end of the part of a long text that the model saw, in characters",
    )
    token_strs: list[str] | None = Field(
        default=None, description="token of each mask as text; only with joint filling"
    )


class RejectedTargetBody(BaseModel):
    """A target that cannot be ranked. It follows the fills if errors are reported."""

    token_str: str = Field(description="the target as in the request")
    error: str = Field(description="one sentence: what is wrong, and what is allowed")


_Mask = list[FillBody | RejectedTargetBody]
_Text = _Mask | list[_Mask]


class FillMaskResponse(RootModel[_Text | list[_Text | ErrorResponse]]):
    """Fills, the best first. Several masks have a list each, and so have several texts."""


def fills_to_json(result: FillResult, *, single: bool) -> bytes:
    """Return the response body, nested as in Hugging Face's API.

    Args:
        result: fills per text and mask.
        single: the request has one text instead of a list.

    Raises:
        InvalidRequestError: the single text is rejected.
    """
    return b"".join(response_parts(result, single=single))


def response_parts(result: FillResult, *, single: bool) -> list[bytes]:
    """Return the response body in parts. The caller joins them once, because each join copies.

    Raises:
        InvalidRequestError: the single text is rejected.
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
        # one mask at a time: serializing a large result at once would block all other threads
        masks = [_fills_json(mask, targets) for mask in text]
        texts.append(masks if len(masks) == 1 else _list_parts([mask] for mask in masks))
    return texts[0] if single else _list_parts(texts)


def _fills_json(fills: Sequence[Fill], rejected: Sequence[RejectedTarget] | None) -> bytes:
    content = _SERIALIZERS[type(fills[0]) if fills else Fill].to_json(fills, exclude_none=True)
    # pydantic writes NaN as null; no text can contain this, because its quotes are escaped
    if b'"score":null' in content:
        raise ValueError("the model returned NaN or infinity")
    return content[:-1] + b"," + _REJECTED_TARGETS.to_json(rejected)[1:] if rejected else content


def _list_parts(items: Iterable[list[bytes]]) -> list[bytes]:
    """Return the parts of a JSON list whose items are in parts."""
    parts = []
    for item in items:
        parts += [b",", *item]
    return [b"[", *parts[1:], b"]"]

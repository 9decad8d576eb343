"""What a request for fills is answered with."""

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

# the type's own serializer is twice as fast as pydantic's for anything
_SERIALIZERS = {
    Fill: TypeAdapter(list[Fill]).serializer,
    TargetFill: TypeAdapter(list[TargetFill]).serializer,
    WordFill: TypeAdapter(list[WordFill]).serializer,
    JointFill: TypeAdapter(list[JointFill]).serializer,
}
_REFUSED_TEXT = TypeAdapter(RejectedText).serializer
_REFUSED_TARGETS = TypeAdapter(Sequence[RejectedTarget]).serializer


class FillBody(BaseModel):
    """One fill of one mask."""

    score: float = Field(description="probability over the whole vocabulary")
    token: int = Field(
        description=f"id of the token; {NO_SINGLE_TOKEN} where the fill is several tokens"
    )
    token_str: str = Field(description="the token as text")
    sequence: str = Field(description="the text with this mask filled")
    log_prob: float | None = Field(
        default=None,
        description="with targets, words or masks filled together: logarithm of the score, in nats",
    )
    target_score: float | None = Field(
        default=None, description="with targets: probability among them alone"
    )
    tokens: list[int] | None = Field(
        default=None, description="with the same: ids of its tokens, or of each mask's"
    )
    window: tuple[int, int] | None = Field(
        default=None, description="the part of a long text that the model saw, in characters"
    )
    token_strs: list[str] | None = Field(
        default=None, description="with masks filled together: the token of each as text"
    )


class RefusedTargetBody(BaseModel):
    """A target that is not ranked, behind those that are; only where errors are reported."""

    token_str: str = Field(description="the target as it was written")
    error: str = Field(description="one sentence: why, and what is allowed")


_Mask = list[FillBody | RefusedTargetBody]
_Text = _Mask | list[_Mask]


class FillMaskAnswer(RootModel[_Text | list[_Text | ErrorResponse]]):
    """Fills, best first: one list, or one a mask for several masks; one of those a text."""


def fills_to_json(answer: FillResult, *, single: bool) -> bytes:
    """The body of an answer, nested as Hugging Face does.

    Args:
        answer: for each text, for each mask.
        single: the request was one text, not a list.

    Raises:
        InvalidRequestError: that one text is refused.
    """
    return b"".join(answer_parts(answer, single=single))


def answer_parts(answer: FillResult, *, single: bool) -> list[bytes]:
    """The body of an answer in parts, to be joined once: each join is another copy.

    Raises:
        InvalidRequestError: as above.
    """
    texts: list[list[bytes]] = []
    for index, text in enumerate(answer.fills):
        if index in answer.rejected_texts:
            refused = answer.rejected_texts[index]
            if single:
                raise InvalidRequestError(refused.error)
            texts.append([_REFUSED_TEXT.to_json(refused)])
            continue
        targets = answer.rejected_targets.get(index)
        # a mask at a time: to write a large answer in one go would hold up all other threads
        masks = [_fills_json(mask, targets) for mask in text]
        texts.append(masks if len(masks) == 1 else _listed([mask] for mask in masks))
    return texts[0] if single else _listed(texts)


def _fills_json(fills: Sequence[Fill], refused: Sequence[RejectedTarget] | None) -> bytes:
    content = _SERIALIZERS[type(fills[0]) if fills else Fill].to_json(fills, exclude_none=True)
    # so a number that is none is written; in a text its quotes would be escaped
    if b'"score":null' in content:
        raise ValueError("the model has answered with what is not a number")
    return content[:-1] + b"," + _REFUSED_TARGETS.to_json(refused)[1:] if refused else content


def _listed(items: Iterable[list[bytes]]) -> list[bytes]:
    """The parts of a list of what comes in parts."""
    parts = []
    for item in items:
        parts += [b",", *item]
    return [b"[", *parts[1:], b"]"]

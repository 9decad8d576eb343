"""Fills of masks, and errors of invalid targets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter

from fillmask.arrays import check_finite
from fillmask.errors import InvalidRequestError
from fillmask.tasks.rejected import RejectedText
from fillmask.tasks.result import Result

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
class FillResult:
    """Result of a fill-mask request.

    Attributes:
        fills: fills of each mask of each text, best first. The joint strategy returns one list per
            text. A rejected text has an empty list.
        is_large: true if serializing takes too long for the event loop.
        rejected_texts: rejected texts, by index.
        rejected_targets: rejected targets, by index of the text.
    """

    fills: Sequence[Sequence[Sequence[Fill]]]
    is_large: bool
    rejected_texts: Mapping[int, RejectedText] = field(default_factory=dict)
    rejected_targets: Mapping[int, Sequence[RejectedTarget]] = field(default_factory=dict)

    def of_text(self, index: int) -> list[Any] | RejectedText:
        """Return the fills of a text, nested as in Hugging Face's API.

        A text with one list of fills has no list around it. Rejected targets follow the fills of
        each mask.
        """
        if index in self.rejected_texts:
            return self.rejected_texts[index]
        rejected = self.rejected_targets.get(index, ())
        masks = [[*fills, *rejected] for fills in self.fills[index]]
        return masks[0] if len(masks) == 1 else masks


# a serializer for one type is twice as fast as pydantic's serializer for any type
_SERIALIZERS = {
    Fill: TypeAdapter(list[Fill]).serializer,
    TargetFill: TypeAdapter(list[TargetFill]).serializer,
    WordFill: TypeAdapter(list[WordFill]).serializer,
    JointFill: TypeAdapter(list[JointFill]).serializer,
}
_REJECTED_TEXT = TypeAdapter(RejectedText).serializer
_REJECTED_TARGETS = TypeAdapter(Sequence[RejectedTarget]).serializer


def fills_to_json(result: FillResult, *, single: bool) -> bytes:
    """Return the response body, nested as in Hugging Face's API.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    return b"".join(response_parts(result, single=single))


def response_parts(result: FillResult, *, single: bool) -> list[bytes]:
    """Return the response body in parts, which the caller joins once."""
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
        check_finite([fill.score for fill in fills])
    return content[:-1] + b"," + _REJECTED_TARGETS.to_json(rejected)[1:] if rejected else content


def _list_parts(items: Iterable[list[bytes]]) -> list[bytes]:
    """Return the parts of a JSON list from the parts of its items."""
    parts = []
    for item in items:
        parts += [b",", *item]
    return [b"[", *parts[1:], b"]"]

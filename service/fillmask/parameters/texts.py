"""Texts and pairs of texts, the input of every task.

The checks are plain functions. A pydantic model per text takes more time than a check of the text's
type.
"""

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from fillmask.bundles.description import TruncationSide
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.types import NOT_BLANK
from fillmask.parameters.validation import described
from fillmask.parameters.values import describe


@dataclass(frozen=True, slots=True)
class TextPair:
    """A pair of texts that the model reads together.

    Outside the tokenizer a pair is its joined text, with one space between the parts. Spans of
    fills count characters of the joined text.
    """

    text: str
    text_pair: str

    def __str__(self) -> str:
        return f"{self.text} {self.text_pair}"

    def __len__(self) -> int:
        return self.second_start + len(self.text_pair)

    @property
    def second_start(self) -> int:
        """Start of the second text in the joined text, in characters."""
        return len(self.text) + 1


class Truncation(NamedTuple):
    """What becomes of a text that exceeds the model's input.

    Attributes:
        truncate: whether the text loses tokens. None means the default of the model or of the
            service.
        side: side at which it loses tokens. None means the side of the model.
        cure: what a client sets so that texts are cut, for error messages.
    """

    truncate: bool | None = None
    side: TruncationSide | None = None
    cure: str = "on_long_text to truncate"


InputText = str | TextPair
PAIR = 'a pair {"text", "text_pair"}'
_ITEM = f"a text or {PAIR}"


class Pair(BaseModel):
    """A text, optionally with a second text. The model reads both texts of a pair together."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=described())

    text: str = Field(pattern=NOT_BLANK, description="The text, or the first text of the pair.")
    text_pair: Annotated[str, Field(pattern=NOT_BLANK)] | None = Field(
        default=None,
        description="The second text of the pair. Without it, the object means a single text.",
    )


def read_inputs(
    value: object,
    label: str,
    max_texts: int,
    *,
    pairs: bool = True,
    report_errors: bool = False,
) -> InputText | list[Any]:
    """Return the inputs of a request, which are a text, a pair or a list of texts and pairs.

    Args:
        label: name of the field, for error messages.
        report_errors: whether the list has the InvalidRequestError of each invalid item.

    Raises:
        InvalidRequestError: the inputs are invalid. The message describes the first error.
    """
    item = _ITEM if pairs else "a text"
    form = f"a text, {PAIR} or a list of these" if pairs else "a text or a list of texts"
    if isinstance(value, str | Mapping | TextPair if pairs else str):
        return _read_item(value, label, item)
    if not isinstance(value, list):
        raise InvalidRequestError(f"{label} must be {form} (got {describe(value)}).")
    if not value:
        raise InvalidRequestError(f"{label} is empty; it must be {form}.")
    check_text_count(value, label, max_texts)
    texts: list[InputText | InvalidRequestError] = []
    for index, one in enumerate(value):
        try:
            texts.append(_read_item(one, f"{label}[{index}]", item))
        except InvalidRequestError as error:
            if not report_errors:
                raise
            texts.append(error)
    return texts


def _read_item(value: object, label: str, form: str) -> InputText:
    if isinstance(value, str):
        return plain_text(value, label)
    if isinstance(value, TextPair) and form == _ITEM:
        return _read_pair({"text": value.text, "text_pair": value.text_pair}, label)
    if isinstance(value, Mapping) and form == _ITEM:
        return _read_pair(dict(value), label)
    raise InvalidRequestError(f"{label} must be {form} (got {describe(value)}).")


def _read_pair(value: dict[str, object], label: str) -> InputText:
    for name in value:
        if name not in Pair.model_fields:
            allowed = ", ".join(Pair.model_fields)
            raise InvalidRequestError(
                f"Unknown field {quote(str(name))} in {label}; allowed: {allowed}."
            )
    if "text" not in value:
        raise InvalidRequestError(f"{label}.text is missing; it must be a non-blank text.")
    text = read_text(value["text"], f"{label}.text")
    if (second := value.get("text_pair")) is None:
        return text
    return TextPair(text, read_text(second, f"{label}.text_pair"))


def read_text(value: object, label: str) -> str:
    """Return a text, or raise InvalidRequestError if it is blank or no text."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequestError(f"{label} must be a non-blank text (got {describe(value)}).")
    return plain_text(value, label)


def plain_text(text: str, label: str) -> str:
    """Return a text without the methods of a subclass.

    It has no unpaired surrogate, which JSON and files can't have.
    """
    try:
        str.encode(text)
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"{label} has an unpaired surrogate at character {error.start}; remove it or complete "
            "the pair."
        ) from None
    return str.__str__(text)


def read_texts(value: object, label: str, max_texts: int, form: str = "a text") -> list[str]:
    """Return a list of texts, which may be blank, or raise InvalidRequestError."""
    if not isinstance(value, list) or not value:
        given = "an empty list" if isinstance(value, list) else describe(value)
        raise InvalidRequestError(f"{label} must be a list of one or more texts (got {given}).")
    check_text_count(value, label, max_texts)
    return [str(_read_item(one, f"{label}[{index}]", form)) for index, one in enumerate(value)]


def check_text_count(texts: Sized, label: str, most: int) -> None:
    if len(texts) > most:
        raise InvalidRequestError(
            f"{label} must have at most {most} texts (got {len(texts)}); send fewer or raise "
            "FILLMASK_MAX_TEXTS."
        )

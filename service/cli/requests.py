"""Requests made from rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.api.fill_request import FillMaskRequest
from service.api.request_body import ValidationContext, describe
from service.bundles.bundle import Bundle
from service.cli.errors import CommandError
from service.cli.formats.answers import Problem
from service.cli.formats.base import Block, Fields, Rows, Unreadable, clash_of
from service.errors import InvalidRequestError, quote
from service.settings import Settings
from service.tasks.options import FillOptions, Limits

# what a row of so many passes takes in memory while it waits is some 200 MB
MAX_PASSES = 2**16
_NO_LIMIT = 2**62


def without_limits(settings: Settings) -> Settings:
    """The settings without the limits that protect a service from its callers.

    How much waits at a time is bounded by the command itself.
    """
    return settings.model_copy(
        update={
            "max_masks": _NO_LIMIT,
            "max_passes": MAX_PASSES,
            "max_waiting_tokens": _NO_LIMIT,
            "max_bulk_tokens": _NO_LIMIT,
            "max_wait_ms": _NO_LIMIT,
        }
    )


def limits_of(bundle: Bundle) -> Limits:
    """What parameters are checked against: all words of the model may be asked for."""
    return Limits(
        max_tokens=bundle.max_tokens,
        max_texts=1,
        max_masks=_NO_LIMIT,
        max_top_k=bundle.architecture.vocab_size - len(bundle.special_token_ids),
        max_passes=MAX_PASSES,
        max_body_bytes=_NO_LIMIT,
    )


PARAMETERS = "parameters"
_NAMED_AT_MOST = 8  # of a row's fields


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A text and how its masks are to be filled."""

    text: str
    options: FillOptions


# a question that a row asks, or why it asks none
Item = RowRequest | Problem
RequestBlock = tuple[Block, Sequence[Item]]


def read_options(parameters: object, limits: Limits) -> FillOptions:
    """Parameters as they come with a request over HTTP, checked as there.

    Raises:
        InvalidRequestError: one sentence about the first thing that is wrong.
    """
    # the text is not looked at
    body = {"inputs": "-", PARAMETERS: parameters}
    options = FillMaskRequest.check(body, ValidationContext(limits)).options
    assert isinstance(options, FillOptions)  # noqa: S101 - of one text there is no list
    return options


class RowRequestReader:
    """Asks what each row is about.

    Args:
        field: which holds the text.
        parameters: of rows that say nothing else, as over HTTP.
        limits: what they are checked against.
        rows: which are asked about.
        reserved: names that no field of theirs may have.

    Raises:
        InvalidRequestError: the parameters are wrong.
        CommandError: no row has the field.

    Attributes:
        options: of rows that say nothing else.
    """

    def __init__(
        self,
        field: str,
        parameters: Mapping[str, Any],
        limits: Limits,
        rows: Rows,
        reserved: tuple[str, ...],
    ) -> None:
        self.options = read_options(parameters, limits)
        self._field = field
        self._parameters = parameters
        self._limits = limits
        self._rows = rows
        self._reserved = reserved
        if rows.columns is not None and field not in rows.columns:
            raise CommandError(f"{rows.name} has no column {quote(field)}; {_others(rows.columns)}")

    def asked(self, start: int, stop: int | None) -> Iterator[RequestBlock]:
        """What is asked of the rows from one number to before another.

        Raises:
            CommandError: they cannot be told apart.
        """
        needed = (self._field, PARAMETERS) if self._rows.row_parameters else (self._field,)
        for block in self._rows.blocks(start, stop, needed):
            yield (
                block,
                [self._of(row) for row in block.fields()],
            )

    def _of(self, fields: Fields | Unreadable) -> Item:
        if isinstance(fields, Unreadable):
            return Problem(fields.sentence, readable=False)
        if clash := clash_of(fields, self._reserved):
            return Problem(f"The row {clash}", readable=False)
        if self._field not in fields:
            return Problem(f"There is no field {quote(self._field)}; {_others(fields)}")
        text = fields[self._field]
        if not isinstance(text, str) or not text:
            return Problem(f"{self._field} must be a text that is not empty{_not(text)}.")
        own = fields.get(PARAMETERS) if self._rows.row_parameters else None
        return RowRequest(text, self.options) if own is None else self._with_parameters(text, own)

    def _with_parameters(self, text: str, own: object) -> RowRequest | Problem:
        try:
            return RowRequest(text, read_options(self._over_all(own), self._limits))
        except InvalidRequestError as error:
            return Problem(error.text)

    def _over_all(self, own: object) -> object:
        """A row's own parameters over those of all; null says nothing."""
        if not isinstance(own, dict):
            return own
        said = {name: value for name, value in own.items() if value is not None}
        return {**self._parameters, **said}


def _not(value: object) -> str:
    if value == "":
        return ""
    try:
        return f", not {describe(value)}"
    except TypeError:  # of Parquet, and nothing in JSON
        return f", not a value of the kind {type(value).__name__}"


def _others(names: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Which fields there are, and how to name one."""
    shown = ", ".join(quote(name) for name in list(names)[:_NAMED_AT_MOST])
    more = " and others" if len(names) > _NAMED_AT_MOST else ""
    there = f"there are {shown}{more}" if names else "there are none"
    return f"{there}. --field names the one with the texts."

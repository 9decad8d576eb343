"""Requests for the fills of rows, with texts and options."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.request_body import ValidationContext
from service.api.bodies.values import describe
from service.bundles.bundle import Bundle
from service.cli.errors import CommandError
from service.cli.formats.answers import Problem
from service.cli.formats.base import Block, Fields, Rows, UnreadableRow, describe_name_clash
from service.errors import InvalidRequestError, quote
from service.settings import Settings
from service.tasks.options import FillOptions, Limits

# a row with this many passes takes about 200 MB of memory while the row waits
MAX_PASSES = 2**16
_NO_LIMIT = 2**62


def without_limits(settings: Settings) -> Settings:
    """Remove the limits that protect a server from its clients.

    The command needs no such limits, because its row pipeline bounds the queued work.
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
    """Return the limits for parameters. The maximum of `top_k` is the number of ordinary tokens."""
    return Limits(
        max_tokens=bundle.max_tokens,
        max_texts=1,
        max_masks=_NO_LIMIT,
        max_top_k=bundle.architecture.vocab_size - len(bundle.special_token_ids),
        max_passes=MAX_PASSES,
        max_body_bytes=_NO_LIMIT,
    )


PARAMETERS = "parameters"
_MAX_NAMED = 8  # maximum number of fields that an error message names


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A text with its options."""

    text: str
    options: FillOptions


Item = RowRequest | Problem
RequestBlock = tuple[Block, Sequence[Item]]


def read_options(parameters: object, limits: Limits) -> FillOptions:
    """Validate parameters against the request schema of the HTTP API.

    Raises:
        InvalidRequestError: a parameter is invalid.
    """
    # the validation ignores the text
    body = {"inputs": "-", PARAMETERS: parameters}
    options = FillMaskRequest.check(body, ValidationContext(limits)).options
    assert isinstance(options, FillOptions)  # noqa: S101 - only a list of texts has a list of options
    return options


class RowRequestReader:
    """Reader that turns rows into fill requests.

    Args:
        field: name of the field or column with the texts.
        parameters: default parameters. A row's own `parameters` field overrides them.
        limits: limits for the parameters.
        rows: the rows to read.
        reserved: field names that the rows must not have.

    Raises:
        InvalidRequestError: a parameter is invalid.
        CommandError: the rows have no column with the name `field`.

    Attributes:
        options: options of rows without parameters of their own.
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
            raise CommandError(
                f"{rows.name} has no column {quote(field)}; {_list_fields('columns', rows.columns)}"
            )

    def read(self, start: int, stop: int | None) -> Iterator[RequestBlock]:
        """Read the requests of the rows from index `start` up to, but not including, `stop`.

        Raises:
            CommandError: the file is damaged.
        """
        needed = (self._field, PARAMETERS) if self._rows.row_parameters else (self._field,)
        for block in self._rows.blocks(start, stop, needed):
            yield block, [self._parse(row) for row in block.fields()]

    def _parse(self, fields: Fields | UnreadableRow) -> Item:
        if isinstance(fields, UnreadableRow):
            return Problem(fields.message, readable=False)
        if clash := describe_name_clash(fields, self._reserved):
            return Problem(f"The row {clash}", readable=False)
        if self._field not in fields:
            return Problem(
                f"The row has no field {quote(self._field)}; {_list_fields('fields', fields)}"
            )
        text = fields[self._field]
        if not isinstance(text, str) or not text:
            return Problem(f"{self._field} must be a non-empty text (got {_describe_value(text)}).")
        own = fields.get(PARAMETERS) if self._rows.row_parameters else None
        return RowRequest(text, self.options) if own is None else self._with_parameters(text, own)

    def _with_parameters(self, text: str, own: object) -> RowRequest | Problem:
        try:
            return RowRequest(text, read_options(self._with_defaults(own), self._limits))
        except InvalidRequestError as error:
            return Problem(error.text)

    def _with_defaults(self, own: object) -> object:
        """Merge a row's parameters into the default parameters. Null keeps the default."""
        if not isinstance(own, dict):
            return own
        overrides = {name: value for name, value in own.items() if value is not None}
        return {**self._parameters, **overrides}


def _describe_value(value: object) -> str:
    try:
        return describe(value)
    except TypeError:  # the value has a Parquet type without a counterpart in JSON
        return f"a value of type {type(value).__name__}"


def _list_fields(noun: str, names: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return the end of an error message, with the existing fields and the flag --field."""
    shown = ", ".join(quote(name) for name in list(names)[:_MAX_NAMED])
    more = " and others" if len(names) > _MAX_NAMED else ""
    existing = f"its {noun} are {shown}{more}" if names else f"it has no {noun}"
    return f"{existing}. Select the field of the texts with --field."

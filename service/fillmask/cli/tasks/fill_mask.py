"""The task fill-mask, which fills the masks of a text."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from fillmask.bundles.bundle import Bundle
from fillmask.cli.tasks.base import Task
from fillmask.cli.terminal.fills_table import format_fills
from fillmask.cli.terminal.style import Style
from fillmask.parameters.fill_mask import DEFAULT_TOP_K, FillMaskParameters, FillOptions
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import ValidationContext
from fillmask.registry.served_model import ServedModel
from fillmask.results.fills import FillResult, fills_to_json

_CHARS_PER_FILL = 150  # characters of a fill's JSON without its sequence
_POSITION_COLUMNS = ("row", "mask", "rank")
_REQUIRED_COLUMNS = ("score", "token", "token_str", "sequence")
_OPTIONAL_COLUMNS = ("log_prob", "target_score", "tokens", "token_strs", "window")


class FillMaskTask(Task[FillOptions, FillResult]):
    """Task that fills the masks of a text."""

    name = "fill-mask"
    parameters = (
        "top_k",
        "targets",
        "granularity",
        "max_word_tokens",
        "strategy",
        "order",
        "on_long_text",
    )
    field = "fills"

    def read_options(self, parameters: object, limits: Limits) -> FillOptions:
        """See `Task`."""
        return FillMaskParameters.read(parameters, ValidationContext(limits)).options

    def check_options(self, model: ServedModel, options: FillOptions) -> None:
        """See `Task`. The method rejects invalid targets."""
        model.require_fill_mask().check_targets(options)

    async def run(
        self, model: ServedModel, text: InputText, options: FillOptions, label: str
    ) -> FillResult:
        """See `Task`."""
        return await model.require_fill_mask().fill([text], options, label)

    async def answer(self, result: FillResult) -> bytes:
        """See `Task`."""
        if result.is_large:
            return await asyncio.to_thread(self.response, result)
        return self.response(result)

    def estimate_chars(self, bundle: Bundle, text: InputText, options: FillOptions) -> int:
        """See `Task`."""
        masks = 1 if options.strategy == "joint" else str(text).count(bundle.mask_token)
        fills = options.top_k or len(options.targets or ()) or DEFAULT_TOP_K
        return len(text) + masks * fills * (len(text) + _CHARS_PER_FILL)

    def response(self, result: FillResult) -> bytes:
        """See `Task`."""
        return fills_to_json(result, single=True)

    def table(
        self,
        bundle: Bundle,  # noqa: ARG002 - for tasks with labels
        text: InputText,
        options: FillOptions,  # noqa: ARG002 - for tasks with labels
        result: FillResult,
        style: Style,
    ) -> Iterator[str]:
        """See `Task`."""
        [masks] = result.fills
        return format_fills(str(text), masks, style)

    def csv_columns(self, options: FillOptions, *, row_parameters: bool) -> tuple[str, ...]:
        """See `Task`. With `row_parameters`, all optional columns exist."""
        optional = _OPTIONAL_COLUMNS if row_parameters else _optional_columns(options)
        return (*_POSITION_COLUMNS, *_REQUIRED_COLUMNS, *optional)

    def csv_rows(self, answer: bytes) -> Iterator[Mapping[str, Any]]:
        """See `Task`. Each fill has one row."""
        for mask, fills in enumerate(parse_fills(answer), 1):
            for rank, fill in enumerate(fills, 1):
                yield {"mask": mask, "rank": rank, **fill}

    def parquet_values(self, answer: bytes) -> Mapping[str, Any]:
        """See `Task`. The fills of all masks form one list, each with the number of its mask."""
        masks = enumerate(parse_fills(answer), 1)
        return {self.field: [{"mask": mask, **fill} for mask, fills in masks for fill in fills]}


def parse_fills(answer: bytes) -> list[list[dict[str, Any]]]:
    """Return one list of fills per mask. Joint fills form a single list."""
    fills: list[Any] = json.loads(answer)
    return fills if fills and isinstance(fills[0], list) else [fills]


def _optional_columns(options: FillOptions) -> tuple[str, ...]:
    """Return the names of the columns for fields that options add to fills.

    The parameters of single rows do not change the columns, so that all shards have the same
    columns.
    """
    columns = []
    if options.targets or options.granularity == "word" or options.strategy == "joint":
        columns += ["log_prob", "tokens"]
    if options.targets:
        columns.append("target_score")
    if options.strategy == "joint":
        columns.append("token_strs")
    if options.on_long_text == "window":
        columns.append("window")
    return tuple(column for column in _OPTIONAL_COLUMNS if column in columns)

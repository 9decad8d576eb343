"""The task fill-mask, which fills the masks of a text."""

import asyncio
from collections.abc import Iterator

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

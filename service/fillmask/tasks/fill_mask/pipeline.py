"""The fill-mask task, which turns texts with masks into ranked fills."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.batcher import Batcher
from fillmask.errors import InvalidRequestError
from fillmask.observability.request_times import timed_tokenization
from fillmask.observability.tracing import Tracer
from fillmask.parameters.fill_mask import FillOptions
from fillmask.parameters.limits import told_passes
from fillmask.parameters.texts import InputText
from fillmask.results.fills import FillResult
from fillmask.results.rejected import RejectedText
from fillmask.tasks.fill_mask.plan import FillPlan, FillPlanner, PlannedFills
from fillmask.tasks.fill_mask.strategies import FillStrategies
from fillmask.tasks.fill_mask.targets import check_targets_size
from fillmask.tokenization.reader import text_label
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer

# tokenizing a target takes about as long as tokenizing this many characters of text
_TARGET_COST_CHARS = 20


class FillMaskPipeline:
    """Pipeline that fills the masks of texts.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        vocab_size: number of rows of the model's embedding table.
        max_masks: maximum number of masks in the texts of one request.
        max_passes: maximum number of passes for one request. The passes of plain fills do not
            count.
        tracer: tracer that records a span for tokenization. The batcher records its own spans.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        *,
        max_tokens: int,
        vocab_size: int,
        max_masks: int,
        max_passes: int,
        tracer: Tracer | None = None,
    ) -> None:
        self._planner = FillPlanner(tokenizer, max_tokens, max_passes)
        self._batcher = batcher
        self._strategies = FillStrategies(tokenizer, batcher, vocab_size)
        self._max_masks = max_masks
        self._max_passes = max_passes
        self._tracer = tracer

    @property
    def accepted_tokens(self) -> int:
        """Number of waiting and running tokens in both lanes."""
        return self._batcher.accepted_tokens

    def check_targets(self, options: FillOptions) -> None:
        """Reject targets that are invalid for every text.

        Raises:
            InvalidRequestError: a target is invalid, or the targets together are too large.
        """
        check_targets_size([options.targets or ()])
        self._planner.check_targets(options)

    async def fill(
        self,
        texts: Sequence[InputText],
        options: FillOptions | Sequence[FillOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> FillResult:
        """Plan and run a request. The arguments and errors are those of `plan` and `run`."""
        return await self.run(await self.plan(texts, options, label, report_errors=report_errors))

    async def plan(
        self,
        texts: Sequence[InputText],
        options: FillOptions | Sequence[FillOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> PlannedFills:
        """Tokenize texts and check the work that they need.

        Args:
            texts: one or more texts or pairs, each with at least one mask.
            options: options for all texts, or a sequence with the options of each text.
            label: the client's name for the texts, for error messages.
            report_errors: True if the result contains the errors of invalid texts and targets.

        Raises:
            InvalidRequestError: the request exceeds the limits of targets, masks or passes.
                Without `report_errors`, an invalid text or target also raises this error.
        """
        same_options = isinstance(options, FillOptions)
        each = [options] * len(texts) if isinstance(options, FillOptions) else options
        lists = {one.targets for one in (each[:1] if same_options else each) if one.targets}
        check_targets_size(lists)
        chars = sum(_TARGET_COST_CHARS + len(target) for targets in lists for target in targets)
        if sum(map(len, texts)) + chars < LONG_TEXT_CHARS:
            planned = self._plan_all(texts, each, label, report_errors=report_errors)
        else:
            planned = await asyncio.to_thread(
                self._plan_all, texts, each, label, report_errors=report_errors
            )
        self._check_work(planned.plans.values())
        return planned

    async def run(self, planned: PlannedFills) -> FillResult:
        """Rank the fills of each mask of each planned text, best first.

        Raises:
            FillMaskError: the batcher rejects the passes.
        """
        plans = planned.plans
        groups = _group_by_options(plans)
        each = plans.values()
        parts = self._batcher.parts_of(
            sum(plan.tokens for plan in each), sum(plan.pass_tokens for plan in each)
        )
        try:
            found = await gather_or_cancel(
                self._strategies.fill(
                    [plans[index] for index in group], parts, is_large=planned.is_large
                )
                for group in groups
            )
        finally:
            self._batcher.forget(parts)
        fills: list[list[list[Any]]] = [[] for _ in range(len(plans) + len(planned.rejected))]
        for group, group_fills in zip(groups, found, strict=True):
            for index, text_fills in zip(group, group_fills, strict=True):
                fills[index] = text_fills
        return FillResult(
            fills,
            planned.is_large,
            planned.rejected,
            {
                index: plan.targets.rejected
                for index, plan in plans.items()
                if plan.targets is not None and plan.targets.rejected
            },
        )

    @property
    def _plan_all(self) -> Callable[..., PlannedFills]:
        # _plan_all is a property, because an attribute with a bound method of its own object is a
        # reference cycle. A pipeline with such a cycle outlives the model.
        return self._plan if self._tracer is None else self._tracer.traced("tokenize", self._plan)

    @timed_tokenization
    def _plan(
        self,
        texts: Sequence[InputText],
        each: Sequence[FillOptions],
        label: str,
        *,
        report_errors: bool,
    ) -> PlannedFills:
        planned: list[FillPlan | RejectedText] = []
        for index, (text, options) in enumerate(zip(texts, each, strict=True)):
            try:
                one_label = text_label(label, index, texts)
                planned.append(
                    self._planner.plan(text, options, one_label, report_errors=report_errors)
                )
            except InvalidRequestError as error:
                if not report_errors:
                    raise
                planned.append(RejectedText(error.text))
        return PlannedFills.collect(planned)

    def _check_work(self, plans: Collection[FillPlan]) -> None:
        masks = sum(plan.masks for plan in plans)
        if masks > self._max_masks:
            raise InvalidRequestError(
                f"The request must have at most {self._max_masks} masks (got {masks}); send "
                "fewer or raise FILLMASK_MAX_MASKS."
            )
        passes = sum(plan.passes for plan in plans)
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"The request needs {passes} passes of the model; the limit is "
                f"{told_passes(self._max_passes)}. Use fewer texts, masks, fills or targets of "
                "several tokens."
            )


def _group_by_options(plans: Mapping[int, FillPlan]) -> list[list[int]]:
    """Group the indices of texts that have equal options."""
    groups: dict[FillOptions, list[int]] = {}
    last: FillOptions | None = None
    for index, plan in plans.items():
        if plan.options is not last:  # texts often share their options, and hashing targets is slow
            last, group = plan.options, groups.setdefault(plan.options, [])
        group.append(index)
    return list(groups.values())

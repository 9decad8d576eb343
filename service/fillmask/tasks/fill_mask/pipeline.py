"""The fill-mask task, which turns texts with masks into ranked fills."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.batcher import Batcher
from fillmask.errors import InvalidRequestError
from fillmask.observability.tracing import Tracer
from fillmask.parameters.limits import told_passes
from fillmask.parameters.texts import InputText
from fillmask.tasks.event_loop import read_each, tokenize
from fillmask.tasks.fill_mask.parameters import FillOptions
from fillmask.tasks.fill_mask.plan import FillPlan, PlannedFills
from fillmask.tasks.fill_mask.results import FillResult
from fillmask.tasks.fill_mask.strategies import FillStrategies
from fillmask.tasks.fill_mask.targets import Targets, check_targets_size
from fillmask.tokenization.byte_cache import ByteCache
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.windows import Window

# tokenizing a target takes about as long as tokenizing this many characters of text
_TARGET_COST_CHARS = 20
# four lists of 10,000 words, which take about 2 MB each
CACHED_TARGETS_BYTES = 2**23


class FillMaskPipeline:
    """Pipeline that fills the masks of texts.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        vocab_size: number of rows of the model's embedding table.
        max_masks: maximum number of masks in the texts of one request.
        max_passes: maximum number of passes for one request. The passes of plain fills do not
            count.
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
        self._tokenizer = tokenizer
        self._reader = TextReader(tokenizer, max_tokens)
        # clients often rank the same list of words in many texts
        self._cached: ByteCache[tuple[str, ...], Targets] = ByteCache(CACHED_TARGETS_BYTES)
        self._batcher = batcher
        self._strategies = FillStrategies(tokenizer, batcher, vocab_size)
        self._max_masks = max_masks
        self._max_passes = max_passes
        self._tracer = tracer

    def check_targets(self, options: FillOptions) -> None:
        """Raise an InvalidRequestError if targets are invalid for every text."""
        check_targets_size([options.targets or ()])
        if options.targets:
            self._resolve(options.targets).check()

    async def fill(
        self,
        texts: Sequence[InputText],
        options: FillOptions | Sequence[FillOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> FillResult:
        return await self.run(await self.plan(texts, options, label, report_errors=report_errors))

    async def plan(
        self,
        texts: Sequence[InputText],
        options: FillOptions | Sequence[FillOptions],
        label: str = "inputs",
        *,
        report_errors: bool = False,
    ) -> PlannedFills:
        """Tokenize texts or pairs and check the work that they need.

        Args:
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
        read = partial(self._plan_text, report_errors=report_errors)
        planned = await tokenize(
            lambda: PlannedFills.collect(
                read_each(read, texts, each, label, report_errors=report_errors)
            ),
            sum(map(len, texts)) + chars,
            self._tracer,
        )
        self._check_work(planned.plans.values())
        return planned

    async def run(self, planned: PlannedFills) -> FillResult:
        """Rank the fills of each mask of each planned text, best first.

        The errors are the batcher's.
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

    def _plan_text(
        self, text: InputText, options: FillOptions, label: str, *, report_errors: bool
    ) -> FillPlan:
        """Make the plan of one text or pair, or raise an InvalidRequestError.

        Args:
            report_errors: True to ignore invalid targets if at least one target is valid.
        """
        targets = self._resolve(options.targets) if options.targets else None
        if targets is not None and targets.rejected and not (report_errors and targets.texts):
            targets.check()
        longest = 1 if targets is None else targets.longest
        if options.granularity == "word":
            longest = options.max_word_tokens
        if options.on_long_text == "window":
            windows = self._reader.read_windows(text, label, longest - 1)
            if options.strategy == "joint" and len(windows) > 1:
                raise InvalidRequestError(
                    f"{label} has masks too far apart for joint filling; use a shorter text or "
                    'strategy "independent".'
                )
            return FillPlan(str(text), options, targets, windows)
        encoded = self._reader.read_masked(text, label)
        if longest > 1:
            tokens = len(encoded.input_ids) - 1 + longest
            self._reader.check_tokens(tokens, label, cause=f" with {longest} in place of a mask")
        return FillPlan(str(text), options, targets, [Window(encoded)])

    def _resolve(self, texts: tuple[str, ...]) -> Targets:
        targets = self._cached.get(texts)
        if targets is None:
            targets = Targets.resolve(self._tokenizer, texts, self._max_passes)
            self._cached.put(texts, targets, targets.size_bytes)
        return targets

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
    groups: dict[FillOptions, list[int]] = {}
    last: FillOptions | None = None
    for index, plan in plans.items():
        if plan.options is not last:  # texts often share their options, and hashing targets is slow
            last, group = plan.options, groups.setdefault(plan.options, [])
        group.append(index)
    return list(groups.values())

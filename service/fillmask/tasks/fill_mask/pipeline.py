"""The fill-mask task, which turns texts with masks into ranked fills."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Self

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.batcher import Batcher
from fillmask.errors import InvalidRequestError
from fillmask.observability.request_context import Tracer
from fillmask.parameters.limits import told_passes
from fillmask.parameters.texts import InputText
from fillmask.tasks.fill_mask.parameters import DEFAULT_WORD_TOKENS, FillMaskParameters
from fillmask.tasks.fill_mask.plan import FillPlan, PlannedFills
from fillmask.tasks.fill_mask.results import TextFills
from fillmask.tasks.fill_mask.strategies import FillStrategies
from fillmask.tasks.fill_mask.targets import Targets, check_targets_size
from fillmask.tasks.pipeline import Inputs, Parts, Pipeline, tokenize
from fillmask.tasks.result import RejectedText
from fillmask.tokenization.byte_cache import ByteCache
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.windows import Window

# tokenizing a target takes about as long as tokenizing this many characters of text
_TARGET_COST_CHARS = 20
# four lists of 10,000 words, which take about 2 MB each
CACHED_TARGETS_BYTES = 2**23


class FillMaskPipeline(Pipeline[FillMaskParameters, PlannedFills, TextFills]):
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

    @classmethod
    def of(cls, parts: Parts) -> Self:
        return cls(
            parts.tokenizer,
            parts.batcher,
            max_tokens=parts.bundle.max_tokens,
            vocab_size=parts.bundle.architecture.vocab_size,
            max_masks=parts.max_masks,
            max_passes=parts.max_passes,
            tracer=parts.tracer,
        )

    def check(self, parameters: FillMaskParameters) -> None:
        check_targets_size([parameters.targets or ()])
        if parameters.targets:
            self._resolve(parameters.targets).check()

    async def plan(self, inputs: Inputs[FillMaskParameters]) -> PlannedFills:
        """Tokenize texts. With `report_errors`, results also contain errors of invalid targets."""
        # texts often share their parameters, and hashing targets is slow
        distinct = {id(one): one for one in inputs.parameters}.values()
        lists = {one.targets for one in distinct if one.targets}
        if lists:
            check_targets_size(lists)
        chars = sum(_TARGET_COST_CHARS + len(target) for targets in lists for target in targets)
        read = partial(self._plan_text, report_errors=inputs.report_errors)
        planned = await tokenize(
            lambda: PlannedFills.collect(inputs.each(read)),
            sum(map(len, inputs.texts)) + chars,
            self._tracer,
        )
        self._check_work(planned.plans.values())
        return planned

    async def run(self, plan: PlannedFills) -> list[TextFills | RejectedText]:
        """Return the fills of each mask of each planned text, best first."""
        plans = plan.plans
        groups = _group_by_parameters(plans)
        each = plans.values()
        parts = self._batcher.parts_of(
            sum(one.tokens for one in each), sum(one.pass_tokens for one in each)
        )
        try:
            found = await gather_or_cancel(
                self._strategies.fill(
                    [plans[index] for index in group], parts, is_large=plan.is_large
                )
                for group in groups
            )
        finally:
            self._batcher.forget(parts)
        results: dict[int, TextFills | RejectedText] = dict(plan.rejected)
        for group, group_fills in zip(groups, found, strict=True):
            for index, masks in zip(group, group_fills, strict=True):
                targets = plans[index].targets
                results[index] = TextFills(masks, () if targets is None else targets.rejected)
        return [results[index] for index in range(len(results))]

    def _plan_text(
        self, text: InputText, own: FillMaskParameters, label: str, *, report_errors: bool
    ) -> FillPlan:
        """Make the plan of one text or pair, or raise an InvalidRequestError.

        Args:
            report_errors: True to ignore invalid targets if at least one target is valid.
        """
        targets = self._resolve(own.targets) if own.targets else None
        if targets is not None and targets.rejected and not (report_errors and targets.texts):
            targets.check()
        longest = 1 if targets is None else targets.longest
        if own.granularity == "word":
            longest = own.max_word_tokens or DEFAULT_WORD_TOKENS
        if own.on_long_text == "window":
            windows = self._reader.read_windows(text, label, longest - 1)
            if own.strategy == "joint" and len(windows) > 1:
                raise InvalidRequestError(
                    f"{label} has masks too far apart for joint filling; use a shorter text or "
                    'strategy "independent".'
                )
            return FillPlan.of(str(text), own, targets, windows)
        encoded = self._reader.read_masked(text, label)
        if longest > 1:
            tokens = len(encoded.input_ids) - 1 + longest
            self._reader.check_tokens(tokens, label, cause=f" with {longest} in place of a mask")
        return FillPlan.of(str(text), own, targets, [Window(encoded)])

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


def _group_by_parameters(plans: Mapping[int, FillPlan]) -> list[list[int]]:
    by_id: dict[int, list[int]] = {}
    for index, plan in plans.items():
        by_id.setdefault(id(plan.parameters), []).append(index)
    if len(by_id) == 1:  # as in `plan`
        return list(by_id.values())
    groups: dict[FillMaskParameters, list[int]] = {}
    for group in by_id.values():
        groups.setdefault(plans[group[0]].parameters, []).extend(group)
    return list(groups.values())

"""The use case: texts with masks in, ranked fills out. No HTTP."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from service.concurrency import gather_or_cancel
from service.engine.batcher import Batcher
from service.errors import InvalidRequestError
from service.observability.tracing import Tracer
from service.tasks.options import FillOptions
from service.tasks.plan import FillPlan, FillPlanner
from service.tasks.response_size import Reserve, no_bound, response_size
from service.tasks.results import FillResult, RejectedText
from service.tasks.strategies import FillStrategies
from service.tasks.targets import check_size
from service.tokenization.reader import text_label
from service.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer

# tokenizing a target costs about as much as this many characters of text
_TARGET_COST_CHARS = 20


class FillMaskPipeline:
    """Fills the masks of texts.

    Args:
        tokenizer: the model's tokenizer.
        batcher: where the requests are computed.
        max_tokens: longest text the model reads, special tokens included.
        vocab_size: rows of the model's table.
        max_masks: most masks in the texts of one call.
        max_passes: most passes of the model for one call, where it takes more than one a text.
        spans: told of what is not told by the batcher, where requests are traced.
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
        spans: Tracer | None = None,
    ) -> None:
        self._reader = FillPlanner(tokenizer, max_tokens, max_passes)
        self._batcher = batcher
        self._ways = FillStrategies(tokenizer, batcher, vocab_size)
        self._max_masks = max_masks
        self._max_passes = max_passes
        self._spans = spans

    @property
    def accepted_tokens(self) -> int:
        """Of all passes that wait or are computed."""
        return self._batcher.accepted_tokens

    def check_targets(self, options: FillOptions) -> None:
        """Refuse targets that no text can be filled with.

        Raises:
            InvalidRequestError: one of them cannot be used.
        """
        check_size([options.targets or ()])
        self._reader.check_targets(options)

    async def fill(
        self,
        texts: Sequence[str],
        options: FillOptions | Sequence[FillOptions],
        called: str = "inputs",
        *,
        report: bool = False,
        reserve: Reserve = no_bound,
    ) -> FillResult:
        """Rank the fills of each mask of each text, best first.

        Args:
            texts: at least one, each with at least one mask.
            options: how they are filled, all of them or each.
            called: what the caller calls the texts, for errors.
            report: answer without the texts and targets that are refused, and say which.
            reserve: takes the memory that answering will hold, before anything is computed.

        Raises:
            InvalidRequestError: there are too many masks, or answering would take too much; or,
                unless that is to be reported, a text has no mask or is too long, or a target
                cannot be used.
            FillMaskError: the batcher does not take the requests, or there is no memory for them.
        """
        alike = isinstance(options, FillOptions)
        each = [options] * len(texts) if isinstance(options, FillOptions) else options
        lists = {one.targets for one in (each[:1] if alike else each) if one.targets}
        check_size(lists)
        chars = sum(_TARGET_COST_CHARS + len(target) for targets in lists for target in targets)
        if sum(map(len, texts)) + chars < LONG_TEXT_CHARS:
            read = self._read_all(texts, each, called, report=report)
        else:
            read = await asyncio.to_thread(self._read_all, texts, each, called, report=report)
        jobs = {index: job for index, job in enumerate(read) if isinstance(job, FillPlan)}
        self._check_work(jobs.values())
        _, memory_bytes, long = response_size(jobs.values())
        reserve(memory_bytes)
        groups = [list(jobs)] if alike and jobs else _groups(jobs)
        found = await gather_or_cancel(
            self._ways.fill([jobs[index] for index in group], long=long) for group in groups
        )
        fills: list[list[list[Any]]] = [[] for _ in texts]
        for group, group_fills in zip(groups, found, strict=True):
            for index, text_fills in zip(group, group_fills, strict=True):
                fills[index] = text_fills
        return FillResult(
            fills,
            long,
            {index: one for index, one in enumerate(read) if isinstance(one, RejectedText)},
            {
                index: job.targets.refused
                for index, job in jobs.items()
                if job.targets is not None and job.targets.refused
            },
        )

    @property
    def _read_all(self) -> Callable[..., list[FillPlan | RejectedText]]:
        # not an attribute: with a method of its own the object would outlive the model
        return self._read if self._spans is None else self._spans.traced("tokenize", self._read)

    def _read(
        self, texts: Sequence[str], each: Sequence[FillOptions], called: str, *, report: bool
    ) -> list[FillPlan | RejectedText]:
        read: list[FillPlan | RejectedText] = []
        for index, (text, options) in enumerate(zip(texts, each, strict=True)):
            try:
                where = text_label(called, index, texts)
                read.append(self._reader.read(text, options, where, report=report))
            except InvalidRequestError as error:
                if not report:
                    raise
                read.append(RejectedText(error.text))
        return read

    def _check_work(self, jobs: Collection[FillPlan]) -> None:
        masks = sum(job.masks for job in jobs)
        if masks > self._max_masks:
            raise InvalidRequestError(
                f"The request has {masks} masks; at most {self._max_masks} are allowed."
            )
        passes = sum(job.passes for job in jobs)
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"The request would take {passes} passes of the model; at most {self._max_passes} "
                "are allowed, so ask for fewer texts, masks, fills or targets of several tokens."
            )


def _groups(jobs: Mapping[int, FillPlan]) -> list[list[int]]:
    """Texts that are filled alike, by their places."""
    groups: dict[FillOptions, list[int]] = {}
    for index, job in jobs.items():
        groups.setdefault(job.options, []).append(index)
    return list(groups.values())

"""The ways to fill masks, one method each: freely, with targets, jointly, with words."""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

from service.concurrency import gather_or_cancel
from service.engine.batch import ModelPass, Submit, no_targets
from service.engine.batcher import Batcher
from service.tasks.joint import fill_jointly, joint_passes
from service.tasks.plan import FillPlan
from service.tasks.ranking import rank, rank_targets
from service.tasks.results import Fill, JointFill, TargetFill, WordFill
from service.tasks.target_passes import TargetPasses
from service.tasks.targets import Targets
from service.tasks.words import WordSearch, word_passes
from service.tokenization.tokenizer import EncodedText, Tokenizer

INTERACTIVE_PASSES = 8  # more for each text, and the request waits while others do not


class FillStrategies:
    """Fills texts that have been read.

    Args:
        tokenizer: the model's.
        batcher: where the passes are computed.
        vocab_size: rows of the model's table.
    """

    def __init__(self, tokenizer: Tokenizer, batcher: Batcher, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._batcher = batcher
        self._vocab_size = vocab_size

    async def fill(self, jobs: Sequence[FillPlan], *, long: bool) -> list[list[list[Any]]]:
        """Of each text, of each mask, the fills; of masks filled together one list a text.

        Args:
            jobs: texts with the same options.
            long: whether to rank the fills would stall the event loop; such requests wait while
                others do not.

        Raises:
            FillMaskError: the batcher does not take the passes.
        """
        first = jobs[0]
        texts = [job.text for job in jobs for _ in job.windows]
        encoded = [window.encoded for job in jobs for window in job.windows]
        fills: Sequence[list[list[Any]]]
        if first.targets is not None:
            fills = await self._with_targets(first.targets, texts, encoded, first.wanted, long=long)
        elif first.options.strategy == "joint":
            fills = await self._jointly(texts, encoded, first)
        elif first.options.granularity == "word":
            fills = await self._with_words(texts, encoded, first)
        else:
            fills = await self._freely(texts, encoded, first.wanted, long=long)
        return _merged(jobs, fills)

    async def _freely(
        self, texts: Sequence[str], encoded: Sequence[EncodedText], wanted: int, *, long: bool
    ) -> list[list[list[Fill]]]:
        # The graph knows nothing of special tokens: ask for as many more, and drop them.
        asked = wanted + len(self._tokenizer.special_token_ids)
        answers = await self._batcher.submit(
            [
                ModelPass(
                    input_ids=text.input_ids,
                    mask_positions=text.mask_positions,
                    top_k=asked,
                    target_ids=no_targets(len(text.mask_spans)),
                )
                for text in encoded
            ],
            bulk=long,
        )
        arguments = (self._tokenizer, texts, encoded, answers, wanted)
        return await asyncio.to_thread(rank, *arguments) if long else rank(*arguments)

    async def _with_targets(
        self,
        targets: Targets,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        wanted: int,
        *,
        long: bool,
    ) -> list[list[list[TargetFill]]]:
        mask = self._tokenizer.mask_token_id
        passes = [TargetPasses(text, targets, mask) for text in encoded]
        requests = [request for one in passes for request in one.requests]
        bulk = long or len(requests) > INTERACTIVE_PASSES * len(texts)
        answers = iter(await self._batcher.submit(requests, bulk=bulk))

        def ranked() -> list[list[list[TargetFill]]]:
            fills = []
            for text, encoded_text, one in zip(texts, encoded, passes, strict=True):
                log_probs = one.log_probs(list(islice(answers, len(one.requests))))
                arguments = (encoded_text, targets, log_probs, wanted)
                fills.append(rank_targets(self._tokenizer, text, *arguments))
            return fills

        return await asyncio.to_thread(ranked) if long else ranked()

    async def _jointly(
        self, texts: Sequence[str], encoded: Sequence[EncodedText], job: FillPlan
    ) -> list[list[list[JointFill]]]:
        async def fill(text: str, encoded_text: EncodedText) -> list[list[JointFill]]:
            submit = self._lane(joint_passes(len(encoded_text.mask_spans), job.wanted))
            return [
                await fill_jointly(
                    text,
                    encoded_text,
                    self._tokenizer,
                    submit,
                    top_k=job.wanted,
                    order=job.options.order,
                )
            ]

        return await gather_or_cancel(map(fill, texts, encoded))

    async def _with_words(
        self, texts: Sequence[str], encoded: Sequence[EncodedText], job: FillPlan
    ) -> list[list[list[WordFill]]]:
        max_tokens = job.options.max_word_tokens
        submit = self._lane(word_passes(max_tokens))
        search = WordSearch(self._tokenizer, submit, self._vocab_size, job.wanted, max_tokens)

        async def fill(text: str, encoded_text: EncodedText) -> list[list[WordFill]]:
            masks = range(len(encoded_text.mask_spans))
            return await gather_or_cancel(search.fill(text, encoded_text, mask) for mask in masks)

        return await gather_or_cancel(map(fill, texts, encoded))

    def _lane(self, passes: int) -> Submit:
        """Where requests are computed of which a text takes so many."""
        return partial(self._batcher.submit, bulk=passes > INTERACTIVE_PASSES)


def _merged(jobs: Sequence[FillPlan], fills: Sequence[list[list[Any]]]) -> list[list[list[Any]]]:
    """The fills of each text, from those of its windows; each says what the model saw."""
    remaining = iter(fills)
    whole = []
    for job in jobs:
        text_fills: list[list[Any]] = []
        for window in job.windows:
            window_fills = next(remaining)
            if window.span is not None:
                for fill in (fill for mask in window_fills for fill in mask):
                    fill.window = window.span
            text_fills += window_fills
        whole.append(text_fills)
    return whole

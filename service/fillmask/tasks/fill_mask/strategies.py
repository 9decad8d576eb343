"""Strategies for filling masks with tokens, targets, words or joint fills."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass, Submit, no_targets
from fillmask.engine.pending_requests import RequestParts
from fillmask.results.fills import Fill, JointFill, TargetFill, WordFill
from fillmask.tasks.fill_mask.joint import fill_jointly, max_joint_passes
from fillmask.tasks.fill_mask.plan import FillPlan
from fillmask.tasks.fill_mask.ranking import rank_targets, rank_tokens
from fillmask.tasks.fill_mask.target_passes import TargetPasses
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.fill_mask.words import WordSearch, max_word_passes
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer

# Requests with more passes per text use the bulk lane, so that short requests do not wait.
INTERACTIVE_PASSES = 8


class FillStrategies:
    """Strategies that fill the masks of texts according to plans.

    Args:
        vocab_size: number of rows of the model's embedding table.
    """

    def __init__(self, tokenizer: Tokenizer, batcher: Batcher, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._batcher = batcher
        self._vocab_size = vocab_size

    async def fill(
        self, plans: Sequence[FillPlan], parts: RequestParts, *, is_large: bool
    ) -> list[list[list[Any]]]:
        """Return the fills of each mask of each text.

        The joint strategy returns one list per text.

        Args:
            plans: plans with equal options.
            parts: state of the request, which may have other plans.
            is_large: True if ranking takes too long for the event loop. The method then ranks
                tokens or targets on another thread and uses the bulk lane.

        Raises:
            FillMaskError: the batcher rejects the passes.
        """
        first = plans[0]
        texts = [plan.text for plan in plans for _ in plan.windows]
        encoded = [window.encoded for plan in plans for window in plan.windows]
        fills: Sequence[list[list[Any]]]
        if first.targets is not None:
            fills = await self._targets(
                first.targets, texts, encoded, first.top_k, parts, is_large=is_large
            )
        elif first.options.strategy == "joint":
            fills = await self._joint(texts, encoded, first, parts)
        elif first.options.granularity == "word":
            fills = await self._words(texts, encoded, first, parts)
        else:
            fills = await self._tokens(texts, encoded, first.top_k, parts, is_large=is_large)
        return _merge_windows(plans, fills)

    async def _tokens(
        self,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        top_k: int,
        parts: RequestParts,
        *,
        is_large: bool,
    ) -> list[list[list[Fill]]]:
        # The graph also ranks special tokens, which rank_tokens drops.
        special_tokens = len(self._tokenizer.special_token_ids)
        graph_top_k = min(top_k + special_tokens, self._vocab_size)
        outputs = await self._batcher.submit(
            [
                ModelPass(
                    input_ids=text.input_ids,
                    mask_positions=text.mask_positions,
                    top_k=graph_top_k,
                    target_ids=no_targets(len(text.mask_spans)),
                    token_types=text.token_types,
                )
                for text in encoded
            ],
            bulk=is_large,
            parts=parts,
        )
        arguments = (self._tokenizer, texts, encoded, outputs, top_k)
        if is_large:
            return await asyncio.to_thread(rank_tokens, *arguments)
        return rank_tokens(*arguments)

    async def _targets(
        self,
        targets: Targets,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        top_k: int,
        parts: RequestParts,
        *,
        is_large: bool,
    ) -> list[list[list[TargetFill]]]:
        mask = self._tokenizer.mask_token_id
        passes = [
            TargetPasses(one, targets, mask, self._tokenizer.glued_masks(text, one))
            for text, one in zip(texts, encoded, strict=True)
        ]
        model_passes = [model_pass for one in passes for model_pass in one.model_passes]
        bulk = is_large or len(model_passes) > INTERACTIVE_PASSES * len(texts)
        outputs = iter(await self._batcher.submit(model_passes, bulk=bulk, parts=parts))

        def rank() -> list[list[list[TargetFill]]]:
            fills = []
            for text, encoded_text, one in zip(texts, encoded, passes, strict=True):
                log_probs = one.log_probs(list(islice(outputs, len(one.model_passes))))
                arguments = (encoded_text, targets, log_probs, top_k)
                fills.append(rank_targets(self._tokenizer, text, *arguments))
            return fills

        return await asyncio.to_thread(rank) if is_large else rank()

    async def _joint(
        self,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        plan: FillPlan,
        parts: RequestParts,
    ) -> list[list[list[JointFill]]]:
        async def fill(text: str, encoded_text: EncodedText) -> list[list[JointFill]]:
            passes = max_joint_passes(len(encoded_text.mask_spans), plan.top_k)
            submit = self._submit_for(passes, parts)
            return [
                await fill_jointly(
                    text,
                    encoded_text,
                    self._tokenizer,
                    submit,
                    vocab_size=self._vocab_size,
                    top_k=plan.top_k,
                    order=plan.options.order,
                )
            ]

        return await gather_or_cancel(map(fill, texts, encoded))

    async def _words(
        self,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        plan: FillPlan,
        parts: RequestParts,
    ) -> list[list[list[WordFill]]]:
        max_tokens = plan.options.max_word_tokens
        submit = self._submit_for(max_word_passes(max_tokens), parts)
        search = WordSearch(self._tokenizer, submit, self._vocab_size, plan.top_k, max_tokens)

        async def fill(text: str, encoded_text: EncodedText) -> list[list[WordFill]]:
            masks = range(len(encoded_text.mask_spans))
            return await gather_or_cancel(search.fill(text, encoded_text, mask) for mask in masks)

        return await gather_or_cancel(map(fill, texts, encoded))

    def _submit_for(self, passes: int, parts: RequestParts) -> Submit:
        """Return a submit function for the lane of texts with this number of passes."""
        return partial(self._batcher.submit, bulk=passes > INTERACTIVE_PASSES, parts=parts)


def _merge_windows(
    plans: Sequence[FillPlan], fills: Sequence[list[list[Any]]]
) -> list[list[list[Any]]]:
    """Merge the fills of each text's windows and store the window in each fill."""
    remaining = iter(fills)
    merged = []
    for plan in plans:
        text_fills: list[list[Any]] = []
        for window in plan.windows:
            window_fills = next(remaining)
            if window.span is not None:
                window_fills = [
                    [replace(fill, window=window.span) for fill in mask] for mask in window_fills
                ]
            text_fills += window_fills
        merged.append(text_fills)
    return merged

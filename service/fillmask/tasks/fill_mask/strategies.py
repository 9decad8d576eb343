"""Strategies for filling masks with tokens, targets, words or joint fills."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass, PassOutputs, Submit, no_targets
from fillmask.engine.request_queue import RequestParts
from fillmask.tasks.fill_mask.joint import fill_jointly, max_joint_passes
from fillmask.tasks.fill_mask.plan import FillPlan
from fillmask.tasks.fill_mask.results import NO_SINGLE_TOKEN, Fill, TargetFill
from fillmask.tasks.fill_mask.target_passes import TargetPasses
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.fill_mask.words import WordSearch, max_word_passes
from fillmask.tokenization.detokenizer import MaskSlot
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer

# Requests with more passes per text use the bulk lane, so that short requests do not wait.
INTERACTIVE_PASSES = 8
# fills of each mask of each text, of one kind
Fills = Sequence[list[list[Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """Windows of texts with equal parameters.

    Attributes:
        texts: the client's text of each window.
        plan: the plan of the first text, for its parameters.
        is_large: True if ranking takes too long for the event loop, so that another thread ranks
            and the passes use the bulk lane.
    """

    texts: Sequence[str]
    encoded: Sequence[EncodedText]
    plan: FillPlan
    parts: RequestParts
    is_large: bool

    async def rank(self, function: Callable[[], Fills]) -> Fills:
        return await asyncio.to_thread(function) if self.is_large else function()


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
        """Return the fills of each mask of each text, or one list per text if filled jointly.

        Args:
            plans: plans with equal parameters.
            parts: state of the request, which may have other plans.
            is_large: True if ranking takes too long for the event loop.

        Raises:
            FillMaskError: the batcher rejects the passes.
        """
        first = plans[0]
        texts = [plan.text for plan in plans for _ in plan.windows]
        encoded = [one for plan in plans for one in plan.encoded]
        job = _Job(texts, encoded, first, parts, is_large)
        if first.targets is not None:
            fills = await self._targets(job, first.targets)
        elif first.parameters.strategy == "joint":
            fills = await self._joint(job)
        elif first.parameters.granularity == "word":
            fills = await self._words(job)
        else:
            fills = await self._tokens(job)
        return _merge_windows(plans, fills)

    async def _tokens(self, job: _Job) -> Fills:
        # The graph also ranks special tokens, which rank_tokens drops.
        special_tokens = len(self._tokenizer.special_token_ids)
        top_k = job.plan.top_k
        graph_top_k = min(top_k + special_tokens, self._vocab_size)
        passes = [
            ModelPass(
                input_ids=text.input_ids,
                mask_positions=text.mask_positions,
                top_k=graph_top_k,
                target_ids=no_targets(len(text.mask_spans)),
                token_types=text.token_types,
            )
            for text in job.encoded
        ]
        outputs = await self._batcher.submit(passes, bulk=job.is_large, parts=job.parts)
        return await job.rank(
            lambda: rank_tokens(self._tokenizer, job.texts, job.encoded, outputs, top_k)
        )

    async def _targets(self, job: _Job, targets: Targets) -> Fills:
        mask = self._tokenizer.mask_token_id
        passes = [
            TargetPasses(one, targets, mask, self._tokenizer.glued_masks(text, one))
            for text, one in zip(job.texts, job.encoded, strict=True)
        ]
        model_passes = [model_pass for one in passes for model_pass in one.model_passes]
        bulk = job.is_large or len(model_passes) > INTERACTIVE_PASSES * len(job.texts)
        outputs = iter(await self._batcher.submit(model_passes, bulk=bulk, parts=job.parts))

        def rank() -> Fills:
            fills = []
            for text, encoded_text, one in zip(job.texts, job.encoded, passes, strict=True):
                log_probs = one.log_probs(list(islice(outputs, len(one.model_passes))))
                arguments = (encoded_text, targets, log_probs, job.plan.top_k)
                fills.append(rank_targets(self._tokenizer, text, *arguments))
            return fills

        return await job.rank(rank)

    async def _joint(self, job: _Job) -> Fills:
        top_k, order = job.plan.top_k, job.plan.parameters.order or "confidence"

        async def fill(text: str, encoded_text: EncodedText) -> list[list[Any]]:
            passes = max_joint_passes(len(encoded_text.mask_spans), top_k)
            return [
                await fill_jointly(
                    text,
                    encoded_text,
                    self._tokenizer,
                    self._submit_for(passes, job.parts),
                    vocab_size=self._vocab_size,
                    top_k=top_k,
                    order=order,
                )
            ]

        return await gather_or_cancel(map(fill, job.texts, job.encoded))

    async def _words(self, job: _Job) -> Fills:
        max_tokens = job.plan.word_tokens
        submit = self._submit_for(max_word_passes(max_tokens), job.parts)
        search = WordSearch(self._tokenizer, submit, self._vocab_size, job.plan.top_k, max_tokens)

        async def fill(text: str, encoded_text: EncodedText) -> list[list[Any]]:
            masks = range(len(encoded_text.mask_spans))
            return await gather_or_cancel(search.fill(text, encoded_text, mask) for mask in masks)

        return await gather_or_cancel(map(fill, job.texts, job.encoded))

    def _submit_for(self, passes: int, parts: RequestParts) -> Submit:
        """Return a submit function for the lane of texts with this number of passes."""
        return partial(self._batcher.submit, bulk=passes > INTERACTIVE_PASSES, parts=parts)


def _merge_windows(plans: Sequence[FillPlan], fills: Fills) -> list[list[list[Any]]]:
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


def rank_targets(
    tokenizer: Tokenizer,
    text: str,
    encoded: EncodedText,
    targets: Targets,
    log_probs_mK: NDArray[np.float64],
    top_k: int,
) -> list[list[TargetFill]]:
    """Return the best targets for each mask of a text.

    Args:
        log_probs_mK: (m, K) log-probability of each target at each mask, in nats.
    """
    ranked = []
    for mask, log_probs_K in enumerate(log_probs_mK):
        slot = tokenizer.mask_slot(text, encoded, mask)
        total = np.logaddexp.reduce(log_probs_K)
        fills = []
        tokens = targets.tokens(glued=slot.glued).ids
        for index in np.argsort(-log_probs_K, kind="stable")[:top_k].tolist():
            ids, log_prob = tokens[index], float(log_probs_K[index])
            token = ids[0] if len(ids) == 1 else NO_SINGLE_TOKEN
            shown = slot.fill_with(tokenizer.target_text(targets.texts[index], ids))
            fills.append(
                TargetFill(
                    math.exp(log_prob),
                    token,
                    *shown,
                    log_prob=log_prob,
                    target_score=math.exp(log_prob - total),
                    tokens=ids,
                )
            )
        ranked.append(fills)
    return ranked


def rank_tokens(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    encoded: Sequence[EncodedText],
    outputs: Sequence[PassOutputs],
    top_k: int,
) -> list[list[list[Fill]]]:
    """Return the best ordinary tokens for each mask of each text."""
    return [
        [
            _rank_mask(tokenizer, tokenizer.mask_slot(text, encoded_text, mask), *row, top_k)
            for mask, row in enumerate(
                zip(output.top_ids.tolist(), output.top_log_probs.tolist(), strict=True)
            )
        ]
        for text, encoded_text, output in zip(texts, encoded, outputs, strict=True)
    ]


def _rank_mask(
    tokenizer: Tokenizer, slot: MaskSlot, ids: list[int], log_probs: list[float], top_k: int
) -> list[Fill]:
    fills: list[Fill] = []
    for token, log_prob in zip(ids, log_probs, strict=True):
        if token not in tokenizer.special_token_ids:
            token_str, sequence = slot.fill(token)
            fills.append(Fill(math.exp(log_prob), token, token_str, sequence))
            if len(fills) == top_k:
                break
    return fills

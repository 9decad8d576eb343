"""The use case: texts with masks in, ranked fills out. No HTTP."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice

import numpy as np

from service.batch import Request
from service.batcher import Batcher
from service.errors import InvalidRequestError
from service.ranking import Fill, TargetFill, rank, rank_targets
from service.target_passes import TargetPasses, passes_needed
from service.targets import Targets
from service.text_reader import TextReader, place
from service.tokenizer import LONG_TEXT_CHARS, EncodedText, Tokenizer

DEFAULT_TOP_K = 5
# Each fill repeats its whole text, so an answer can be far larger than its request.
MAX_ANSWER_CHARS = 8 * 2**20
# tokenizing a target costs about as much as this many characters of text
_TARGET_COST_CHARS = 20
# making an answer of this size takes 0.3 ms; going to another thread and back takes 0.03 ms
LONG_ANSWER_CHARS = 100_000
# making a fill costs about as much as copying this many characters
_FILL_COST_CHARS = 500
PROMPT_PASSES = 8  # more for each text, and the request waits while others do not
_CACHED_TARGETS = 32  # lists of them; the longest take a megabyte each


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with.

    Attributes:
        fills: for each text, for each mask, best first.
        long: to do something with each fill takes so long that it would stall the event loop.
    """

    fills: Sequence[Sequence[Sequence[Fill]]]
    long: bool


class FillMask:
    """Fills the masks of texts.

    Args:
        tokenizer: the model's tokenizer.
        batcher: where the requests are computed.
        max_tokens: longest text the model reads, special tokens included.
        max_masks: most masks in the texts of one call.
        max_passes: most texts computed for the targets of one call.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        max_tokens: int,
        max_masks: int,
        max_passes: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._reader = TextReader(tokenizer, max_tokens)
        self._batcher = batcher
        self._max_masks = max_masks
        self._max_passes = max_passes
        # those who rank a list of words rank it in many texts
        self._resolve = lru_cache(_CACHED_TARGETS)(partial(Targets.resolve, tokenizer))

    async def fill(
        self,
        texts: Sequence[str],
        top_k: int | None,
        targets: Sequence[str] | None,
        called: str = "inputs",
    ) -> Answer:
        """Rank the fills of each mask of each text, best first.

        Args:
            texts: at least one, each with at least one mask.
            top_k: most fills a mask; None for all the targets, or else for DEFAULT_TOP_K.
            targets: the only words to rank, where given; or else the whole vocabulary without its
                special tokens.
            called: what the caller calls the texts, for errors.

        Raises:
            InvalidRequestError: a text has no mask or is too long, there are too many masks, a
                target cannot be used, or answering would take too much.
            FillMaskError: the batcher does not take the requests.
        """
        cost_chars = sum(map(len, texts)) + _TARGET_COST_CHARS * len(targets or ())
        if cost_chars < LONG_TEXT_CHARS:
            encoded, found = self._encode(texts, targets, called)
        else:
            encoded, found = await asyncio.to_thread(self._encode, texts, targets, called)
        if found is None:
            wanted = top_k or DEFAULT_TOP_K
            long = _is_long(texts, encoded, wanted)
            return Answer(await self._fill_freely(texts, encoded, wanted, long=long), long)
        wanted = min(top_k or len(found), len(found))
        long = _is_long(texts, encoded, wanted)
        return Answer(await self._fill_with(found, texts, encoded, wanted, long=long), long)

    async def _fill_freely(
        self, texts: Sequence[str], encoded: Sequence[EncodedText], wanted: int, *, long: bool
    ) -> list[list[list[Fill]]]:
        # The graph knows nothing of special tokens: ask for as many more, and drop them.
        asked = wanted + len(self._tokenizer.special_token_ids)
        answers = await self._batcher.submit(
            [
                Request(
                    input_ids=text.input_ids,
                    mask_positions=text.mask_positions,
                    top_k=asked,
                    target_ids=np.empty((len(text.mask_spans), 0), dtype=np.int64),
                )
                for text in encoded
            ]
        )
        arguments = (self._tokenizer, texts, encoded, answers, wanted)
        return await asyncio.to_thread(rank, *arguments) if long else rank(*arguments)

    async def _fill_with(
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
        patient = len(requests) > PROMPT_PASSES * len(texts)
        answers = iter(await self._batcher.submit(requests, patient=patient))

        def ranked() -> list[list[list[TargetFill]]]:
            fills = []
            for text, encoded_text, one in zip(texts, encoded, passes, strict=True):
                log_probs = one.log_probs(list(islice(answers, len(one.requests))))
                arguments = (encoded_text, targets, log_probs, wanted)
                fills.append(rank_targets(self._tokenizer, text, *arguments))
            return fills

        return await asyncio.to_thread(ranked) if long else ranked()

    def _encode(
        self, texts: Sequence[str], targets: Sequence[str] | None, called: str
    ) -> tuple[list[EncodedText], Targets | None]:
        encoded = []
        for index, text in enumerate(texts):
            encoded.append(self._reader.masked(text, place(called, index, texts)))
        masks = sum(len(text.mask_spans) for text in encoded)
        if masks > self._max_masks:
            raise InvalidRequestError(
                f"The request has {masks} masks; at most {self._max_masks} are allowed."
            )
        if not targets:
            return encoded, None
        found = self._resolve(tuple(targets))
        self._check_passes(encoded, found, called)
        return encoded, found

    def _check_passes(self, encoded: Sequence[EncodedText], targets: Targets, called: str) -> None:
        passes = sum(passes_needed(text, targets) for text in encoded)
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"The targets of several tokens would take {passes} passes of the model; at most "
                f"{self._max_passes} are allowed, so give fewer of them, or fewer texts or masks."
            )
        for index, text in enumerate(encoded):
            self._reader.check_tokens(
                len(text.input_ids) - 1 + targets.longest,
                place(called, index, encoded),
                f" with a target of {targets.longest} in place of a mask",
            )


def _is_long(texts: Sequence[str], encoded: Sequence[EncodedText], fills: int) -> bool:
    """Whether the answer is long.

    Args:
        texts: as they were written.
        encoded: the same, as the model reads them.
        fills: of each mask.

    Raises:
        InvalidRequestError: it is too long.
    """
    masks = chars = 0
    for text, encoded_text in zip(texts, encoded, strict=True):
        masks += len(encoded_text.mask_spans)
        chars += len(encoded_text.mask_spans) * len(text)
    if chars * fills > MAX_ANSWER_CHARS:
        raise InvalidRequestError(
            f"The answer would have {chars * fills} characters of text; at most "
            f"{MAX_ANSWER_CHARS} are allowed, so ask for fewer texts, masks or fills."
        )
    return (masks * _FILL_COST_CHARS + chars) * fills > LONG_ANSWER_CHARS

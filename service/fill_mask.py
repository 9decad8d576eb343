"""The use case: texts with masks in, ranked fills out. No HTTP."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from service.answer_size import is_long
from service.batch import Request, Submit, no_targets
from service.batcher import Batcher
from service.errors import InvalidRequestError
from service.fill_options import DEFAULT_TOP_K, FillOptions
from service.joint_fills import JointFill, fill_jointly, joint_passes
from service.ranking import Fill, TargetFill, rank, rank_targets
from service.target_passes import TargetPasses, passes_needed
from service.targets import Targets
from service.text_reader import TextReader, place
from service.tokenizer import LONG_TEXT_CHARS, EncodedText, Tokenizer
from service.windows import Window
from service.word_fills import WordFill, WordSearch, word_passes

# tokenizing a target costs about as much as this many characters of text
_TARGET_COST_CHARS = 20
PROMPT_PASSES = 8  # more for each text, and the request waits while others do not
_CACHED_TARGETS = 32  # lists of them; the longest take a megabyte each


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with.

    Attributes:
        fills: for each text, for each mask, best first; of masks filled together one list a text.
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
        vocab_size: rows of the model's table.
        max_masks: most masks in the texts of one call.
        max_passes: most passes of the model for one call, where it takes more than one a text.
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
    ) -> None:
        self._tokenizer = tokenizer
        self._reader = TextReader(tokenizer, max_tokens)
        self._batcher = batcher
        self._vocab_size = vocab_size
        self._max_masks = max_masks
        self._max_passes = max_passes
        # those who rank a list of words rank it in many texts
        self._resolve = lru_cache(_CACHED_TARGETS)(partial(Targets.resolve, tokenizer))

    @property
    def accepted_tokens(self) -> int:
        """Of all passes that wait or are computed."""
        return self._batcher.accepted_tokens

    def check_targets(self, options: FillOptions) -> None:
        """Refuse targets that no text can be filled with.

        Raises:
            InvalidRequestError: one of them cannot be used.
        """
        if options.targets:
            self._resolve(tuple(options.targets))

    async def fill(
        self, texts: Sequence[str], options: FillOptions, called: str = "inputs"
    ) -> Answer:
        """Rank the fills of each mask of each text, best first.

        Args:
            texts: at least one, each with at least one mask.
            options: how they are filled.
            called: what the caller calls the texts, for errors.

        Raises:
            InvalidRequestError: a text has no mask or is too long, there are too many masks, a
                target cannot be used, or answering would take too much.
            FillMaskError: the batcher does not take the requests.
        """
        cost_chars = sum(map(len, texts)) + _TARGET_COST_CHARS * len(options.targets or ())
        if cost_chars < LONG_TEXT_CHARS:
            windows, targets = self._read(texts, options, called)
        else:
            windows, targets = await asyncio.to_thread(self._read, texts, options, called)
        wanted = options.top_k or (len(targets) if targets else DEFAULT_TOP_K)
        if targets:
            wanted = min(wanted, len(targets))
        parts = [text for text, own in zip(texts, windows, strict=True) for _ in own]
        encoded = [window.encoded for own in windows for window in own]
        long = is_long(parts, encoded, wanted, len(targets) if targets else 0)
        fills: Sequence[list[list[Any]]]
        if targets:
            fills = await self._with_targets(targets, parts, encoded, wanted, long=long)
        elif options.strategy == "joint":
            fills = await self._jointly(parts, encoded, wanted, options)
        elif options.granularity == "word":
            fills = await self._with_words(parts, encoded, wanted, options)
        else:
            fills = await self._freely(parts, encoded, wanted, long=long)
        cut = any(window.part for own in windows for window in own)
        return Answer(merged(windows, fills) if cut else fills, long)

    async def _freely(
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
                    target_ids=no_targets(len(text.mask_spans)),
                )
                for text in encoded
            ]
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

    async def _jointly(
        self,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        wanted: int,
        options: FillOptions,
    ) -> list[list[list[JointFill]]]:
        fills = []
        for text, encoded_text in zip(texts, encoded, strict=True):
            submit = self._lane(joint_passes(len(encoded_text.mask_spans), wanted))
            fills.append(
                fill_jointly(
                    text,
                    encoded_text,
                    self._tokenizer,
                    submit,
                    top_k=wanted,
                    order=options.order,
                )
            )
        return [[text_fills] for text_fills in await asyncio.gather(*fills)]

    async def _with_words(
        self,
        texts: Sequence[str],
        encoded: Sequence[EncodedText],
        wanted: int,
        options: FillOptions,
    ) -> list[list[list[WordFill]]]:
        submit = self._lane(word_passes(options.max_word_tokens))
        search = WordSearch(
            self._tokenizer, submit, self._vocab_size, wanted, options.max_word_tokens
        )

        async def fill_all(text: str, encoded_text: EncodedText) -> list[list[WordFill]]:
            masks = range(len(encoded_text.mask_spans))
            return await asyncio.gather(*(search.fill(text, encoded_text, mask) for mask in masks))

        return await asyncio.gather(*map(fill_all, texts, encoded))

    def _lane(self, passes: int) -> Submit:
        """Where requests are computed of which a text takes so many."""
        return partial(self._batcher.submit, patient=passes > PROMPT_PASSES)

    def _read(
        self, texts: Sequence[str], options: FillOptions, called: str
    ) -> tuple[list[list[Window]], Targets | None]:
        """Of each text what the model sees of it, and the targets."""
        targets = self._resolve(tuple(options.targets)) if options.targets else None
        longest = targets.longest if targets else 1
        if options.granularity == "word":
            longest = options.max_word_tokens
        windows = []
        for index, text in enumerate(texts):
            where = place(called, index, texts)
            if options.on_long_text == "window":
                windows.append(self._reader.windows(text, where, longest - 1))
                continue
            encoded = self._reader.masked(text, where)
            if longest > 1:
                tokens = len(encoded.input_ids) - 1 + longest
                self._reader.check_tokens(tokens, where, f" with {longest} in place of a mask")
            windows.append([Window(encoded)])
        self._check_work(windows, options, targets)
        return windows, targets

    def _check_work(
        self, windows: Sequence[Sequence[Window]], options: FillOptions, targets: Targets | None
    ) -> None:
        encoded = [window.encoded for own in windows for window in own]
        masks = [len(text.mask_spans) for text in encoded]
        if sum(masks) > self._max_masks:
            raise InvalidRequestError(
                f"The request has {sum(masks)} masks; at most {self._max_masks} are allowed."
            )
        if targets:
            self._check_passes(sum(passes_needed(text, targets) for text in encoded))
        elif options.strategy == "joint":
            if len(encoded) > len(windows):
                raise InvalidRequestError(
                    "Masks that are further apart than the model reads cannot be filled together."
                )
            top_k = options.top_k or DEFAULT_TOP_K
            self._check_passes(sum(joint_passes(count, top_k) for count in masks))
        elif options.granularity == "word":
            self._check_passes(sum(masks) * word_passes(options.max_word_tokens))

    def _check_passes(self, passes: int) -> None:
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"The request would take {passes} passes of the model; at most {self._max_passes} "
                "are allowed, so ask for fewer texts, masks, fills or targets of several tokens."
            )


def merged(
    windows: Sequence[Sequence[Window]], fills: Sequence[list[list[Any]]]
) -> list[list[list[Any]]]:
    """The fills of each text, from those of its windows; each says what the model saw."""
    remaining = iter(fills)
    whole = []
    for own in windows:
        text_fills: list[list[Any]] = []
        for window in own:
            window_fills = next(remaining)
            for fill in (fill for mask in window_fills for fill in mask):
                fill.window = window.part
            text_fills += window_fills
        whole.append(text_fills)
    return whole

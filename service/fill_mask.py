"""The use case: texts with masks in, ranked fills out. No HTTP."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.batch import IntArray, Request
from service.batcher import Batcher
from service.errors import InvalidRequestError, quote
from service.ranking import Fill, rank
from service.tokenizer import LONG_TEXT_CHARS, EncodedText, Tokenizer

DEFAULT_TOP_K = 5
# White space and unknown words are long text in few tokens. No language comes near this length a
# token, and what is longer is refused before it costs the time to tokenize it.
MAX_CHARS_PER_TOKEN = 64
# Each fill repeats its whole text, so an answer can be far larger than its request.
MAX_ANSWER_CHARS = 8 * 2**20
# tokenizing a target costs about as much as this many characters of text
_TARGET_COST_CHARS = 20
# making an answer of this size takes 0.3 ms; going to another thread and back takes 0.03 ms
LONG_ANSWER_CHARS = 100_000
# making a fill costs about as much as copying this many characters
_FILL_COST_CHARS = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with.

    Attributes:
        fills: for each text, for each mask, best first.
        long: to do something with each fill takes so long that it would stall the event loop.
    """

    fills: list[list[list[Fill]]]
    long: bool


class FillMask:
    """Fills the masks of texts.

    Args:
        tokenizer: the model's tokenizer.
        batcher: where the requests are computed.
        max_tokens: longest text the model reads, special tokens included.
        max_masks: most masks in the texts of one call.
    """

    def __init__(
        self, tokenizer: Tokenizer, batcher: Batcher, max_tokens: int, max_masks: int
    ) -> None:
        self._tokenizer = tokenizer
        self._batcher = batcher
        self._max_tokens = max_tokens
        self._max_masks = max_masks

    async def fill(
        self, texts: Sequence[str], top_k: int | None, targets: Sequence[str] | None
    ) -> Answer:
        """Rank the fills of each mask of each text, best first.

        Args:
            texts: at least one, each with at least one mask.
            top_k: most fills a mask; None for all the targets, or else for DEFAULT_TOP_K.
            targets: the only tokens to rank, where given; or else the whole vocabulary without
                its special tokens.

        Raises:
            InvalidRequestError: a text has no mask or is too long, there are too many masks, a
                target is not one token, or the answer would be too large.
            FillMaskError: the batcher does not take the requests.
        """
        cost_chars = sum(map(len, texts)) + _TARGET_COST_CHARS * len(targets or ())
        if cost_chars < LONG_TEXT_CHARS:
            encoded, target_ids = self._encode(texts, targets)
        else:
            encoded, target_ids = await asyncio.to_thread(self._encode, texts, targets)
        wanted = top_k or len(target_ids) or DEFAULT_TOP_K
        long = _is_long(texts, encoded, min(wanted, len(target_ids) or wanted))
        # The graph knows nothing of special tokens: ask for as many more, and drop them.
        asked = 1 if targets else wanted + len(self._tokenizer.special_token_ids)
        answers = await self._batcher.submit(
            [
                Request(
                    input_ids=text.input_ids,
                    mask_positions=text.mask_positions,
                    top_k=asked,
                    target_ids=_repeat(target_ids, len(text.mask_spans)),
                )
                for text in encoded
            ]
        )
        arguments = (self._tokenizer, texts, encoded, answers, target_ids, wanted)
        fills = await asyncio.to_thread(rank, *arguments) if long else rank(*arguments)
        return Answer(fills, long)

    def _encode(
        self, texts: Sequence[str], targets: Sequence[str] | None
    ) -> tuple[list[EncodedText], IntArray]:
        encoded = []
        for index, text in enumerate(texts):
            where = f"inputs[{index}]" if len(texts) > 1 else "inputs"
            encoded.append(self._encode_text(text, where))
        masks = sum(len(text.mask_spans) for text in encoded)
        if masks > self._max_masks:
            raise InvalidRequestError(
                f"The request has {masks} masks; at most {self._max_masks} are allowed."
            )
        return encoded, self._encode_targets(targets or ())

    def _encode_text(self, text: str, where: str) -> EncodedText:
        max_chars = self._max_tokens * MAX_CHARS_PER_TOKEN
        if len(text) > max_chars:
            raise InvalidRequestError(
                f"{where} has {len(text)} characters; the model reads at most {self._max_tokens} "
                f"tokens, in at most {max_chars} characters."
            )
        encoded = self._tokenizer.encode(text)
        tokens = len(encoded.input_ids)
        if tokens > self._max_tokens:
            raise InvalidRequestError(
                f"{where} has {tokens} tokens, special tokens included; the model reads at most "
                f"{self._max_tokens}."
            )
        if not encoded.mask_spans:
            raise InvalidRequestError(
                f"{where} has no mask: write {self._tokenizer.mask_token} where a word is wanted."
            )
        return encoded

    def _encode_targets(self, targets: Sequence[str]) -> IntArray:
        """(K,): the id of each target."""
        by_id: dict[int, str] = {}
        for target in targets:
            token_id = self._tokenizer.target_id(target)
            if token_id in by_id:
                raise InvalidRequestError(
                    f"The targets {quote(by_id[token_id])} and {quote(target)} are the same token."
                )
            by_id[token_id] = target
        return np.array(list(by_id), dtype=np.int64)


def _repeat(target_ids_K: IntArray, masks: int) -> IntArray:
    """(m, K): the ids for each mask."""
    target_ids_mK = np.empty((masks, len(target_ids_K)), dtype=np.int64)
    target_ids_mK[:] = target_ids_K
    return target_ids_mK


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

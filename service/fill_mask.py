"""The use case: texts with masks in, ranked fills out. No HTTP."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.batch import Fills, IntArray, Request
from service.batcher import Batcher
from service.errors import InvalidRequestError, quote
from service.tokenizer import LONG_TEXT_CHARS, EncodedText, Tokenizer

DEFAULT_TOP_K = 5
# White space and unknown words are long text in few tokens. No language comes near this length a
# token, and what is longer is refused before it costs the time to tokenize it.
MAX_CHARS_PER_TOKEN = 64
# Each fill repeats its whole text, so an answer can be far larger than its request.
MAX_ANSWER_CHARS = 8 * 2**20
# tokenizing a target costs about as much as this many characters of text
_TARGET_COST_CHARS = 20


@dataclass(frozen=True, slots=True)
class Fill:
    """One proposal for one mask.

    Attributes:
        token: its id.
        token_str: the token as text.
        log_prob: natural log-probability over the whole vocabulary.
        sequence: the user's text with this mask filled.
    """

    token: int
    token_str: str
    log_prob: float
    sequence: str


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
    ) -> list[list[list[Fill]]]:
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
        _check_answer_size(texts, encoded, min(wanted, len(target_ids) or wanted))
        # The graph knows nothing of special tokens: ask for as many more, and drop them.
        asked = 1 if targets else wanted + len(self._tokenizer.special_token_ids)
        answers = await self._batcher.submit(
            [
                Request(
                    input_ids=text.input_ids,
                    mask_positions=text.mask_positions,
                    top_k=asked,
                    target_ids=np.tile(target_ids, (len(text.mask_positions), 1)),
                )
                for text in encoded
            ]
        )
        return [
            [
                self._rank(text, span, *_candidates(answer, mask, target_ids), wanted)
                for mask, span in enumerate(encoded_text.mask_spans)
            ]
            for text, encoded_text, answer in zip(texts, encoded, answers, strict=True)
        ]

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

    def _rank(
        self, text: str, span: tuple[int, int], ids: IntArray, log_probs: list[float], wanted: int
    ) -> list[Fill]:
        """The best `wanted` of the candidates that are ordinary tokens."""
        ranked = sorted(zip(log_probs, ids.tolist(), strict=True), key=lambda pair: -pair[0])
        ordinary = [pair for pair in ranked if pair[1] not in self._tokenizer.special_token_ids]
        return [
            Fill(
                token=token,
                token_str=self._tokenizer.token_str(token),
                log_prob=log_prob,
                sequence=self._tokenizer.sequence(text, span, token),
            )
            for log_prob, token in ordinary[:wanted]
        ]


def _candidates(answer: Fills, mask: int, target_ids: IntArray) -> tuple[IntArray, list[float]]:
    """The ids that may fill this mask, with their log-probabilities."""
    if len(target_ids):
        return target_ids, answer.target_log_probs[mask].tolist()
    return answer.top_ids[mask], answer.top_log_probs[mask].tolist()


def _check_answer_size(texts: Sequence[str], encoded: Sequence[EncodedText], fills: int) -> None:
    answer_chars = sum(
        len(text) * len(encoded_text.mask_spans) * fills
        for text, encoded_text in zip(texts, encoded, strict=True)
    )
    if answer_chars > MAX_ANSWER_CHARS:
        raise InvalidRequestError(
            f"The answer would have {answer_chars} characters of text; at most {MAX_ANSWER_CHARS} "
            "are allowed, so ask for fewer texts, masks or fills."
        )

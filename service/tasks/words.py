"""Whole words in place of a mask: of one token up to a few, found by bounded beam search.

For each length the mask is widened to as many masks; then the word's tokens are predicted from left
to right, each with those before it in place. The sum of the log-probabilities is the word's, and
words of all lengths are ranked by it.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from service.concurrency import gather_or_cancel
from service.engine.batch import ModelPass, Submit, no_targets
from service.tasks.results import NO_SINGLE_TOKEN, WordFill
from service.tokenization.detokenizer import TokenText
from service.tokenization.tokenizer import EncodedText, Tokenizer

# words kept of each length while they grow
BEAM = 5
# tokens looked at for each that is wanted, for most of the best may be no beginnings of words
_LOOKED_AT, _LOOKED_AT_LEAST = 16, 256
_INSIDE_WORDS = "'\N{RIGHT SINGLE QUOTATION MARK}-"


@dataclass(frozen=True, slots=True)
class WordSearch:
    """How words are searched.

    Attributes:
        tokenizer: the model's.
        submit: computes requests.
        vocab_size: rows of the model's table.
        top_k: most words.
        max_tokens: most tokens of a word.
    """

    tokenizer: Tokenizer
    submit: Submit
    vocab_size: int
    top_k: int
    max_tokens: int

    async def fill(self, text: str, encoded: EncodedText, mask: int) -> list[WordFill]:
        """The best words for a mask, best first.

        Args:
            text: as it was written.
            encoded: the same, as the model reads it.
            mask: its number in the text.

        Raises:
            FillMaskError: whatever `submit` raises.
        """
        start, _ = encoded.mask_spans[mask]
        before = text[start - 1 : start]
        # behind a quotation mark or at the start of a text, a word may come without its space
        bare = not before.isspace() and not before.isalnum()
        lengths = range(1, self.max_tokens + 1)
        found = await gather_or_cancel(
            self._of_length(length, encoded, mask, bare=bare) for length in lengths
        )
        best: dict[str, tuple[float, tuple[int, ...], TokenText]] = {}
        for ids, log_prob in (word for words in found for word in words):
            piece = self.tokenizer.join_tokens(ids)
            if piece.word not in best or log_prob > best[piece.word][0]:
                best[piece.word] = (log_prob, ids, piece)
        blank = self.tokenizer.mask_slot(text, encoded.mask_spans[mask])
        fills = []
        ranked = sorted(best.values(), key=lambda word: -word[0])
        for log_prob, ids, piece in ranked[: self.top_k]:
            token_str, sequence = blank.fill_with(piece)
            token = ids[0] if len(ids) == 1 else NO_SINGLE_TOKEN
            fills.append(
                WordFill(
                    score=math.exp(log_prob),
                    token=token,
                    token_str=token_str,
                    sequence=sequence,
                    log_prob=log_prob,
                    tokens=ids,
                )
            )
        return fills

    async def _of_length(
        self, length: int, encoded: EncodedText, mask: int, *, bare: bool
    ) -> Sequence[tuple[tuple[int, ...], float]]:
        """The best words of so many tokens, with their log-probabilities."""
        width = self.top_k if length == 1 else BEAM
        asked = min(self.vocab_size, _LOOKED_AT_LEAST + _LOOKED_AT * width)
        words: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for place in range(length):
            if not words:  # of all that was looked at nothing begins or goes on with a word
                break
            requests = [self._request(encoded, mask, length, ids, asked) for ids, _ in words]
            answers = await self.submit(requests)
            grown = []
            for (ids, log_prob), answer in zip(words, answers, strict=True):
                allowed = [
                    ((*ids, token), log_prob + more)
                    for token, more in zip(
                        answer.top_ids[0].tolist(), answer.top_log_probs[0].tolist(), strict=True
                    )
                    if self._fits(token, place, bare=bare)
                ]
                grown += allowed[:width]
            words = sorted(grown, key=lambda word: -word[1])[:width]
        return words

    def _request(
        self, encoded: EncodedText, mask: int, length: int, ids: tuple[int, ...], asked: int
    ) -> ModelPass:
        masks = [self.tokenizer.mask_token_id] * (length - len(ids))
        position = encoded.mask_positions[mask : mask + 1] + len(ids)
        return ModelPass(encoded.replace_mask(mask, [*ids, *masks]), position, asked, no_targets(1))

    def _fits(self, token: int, place: int, *, bare: bool) -> bool:
        if token in self.tokenizer.special_token_ids:
            return False
        text, word, continuation = self.tokenizer.token_text(token)
        if place:
            return continuation is not None and _is_of_a_word(continuation)
        starts = continuation is None or (bare and text == continuation)
        return starts and word[:1].isalnum() and _is_of_a_word(word)


def word_passes(max_tokens: int) -> int:
    """Most passes of the model that a mask takes."""
    return sum(1 + (length - 1) * BEAM for length in range(1, max_tokens + 1))


def _is_of_a_word(text: str) -> bool:
    """Letters, digits, the marks that belong to them, and what stands inside words."""
    return bool(text) and all(
        character.isalnum()
        or character in _INSIDE_WORDS
        or unicodedata.category(character).startswith("M")
        for character in text
    )

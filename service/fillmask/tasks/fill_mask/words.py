"""Bounded beam search for fills that are whole words of one or more tokens.

For each word length, the search replaces the mask with as many masks as the word has tokens. The
model predicts these tokens from left to right, with the earlier tokens in place. The
log-probability of a word is the sum of the log-probabilities of its tokens. This sum ranks words of
all lengths.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from fillmask.concurrency import gather_or_cancel
from fillmask.engine.passes import ModelPass, Submit, no_targets
from fillmask.tasks.fill_mask.results import NO_SINGLE_TOKEN, WordFill
from fillmask.tokenization.detokenizer import MaskSlot, TokenText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.words import divides

# number of incomplete words that the search keeps per word length
BEAM_WIDTH = 5
# number of candidate tokens per requested word, because many probable tokens start no word
_CANDIDATES_PER_WORD, _MIN_CANDIDATES = 16, 256
_WORD_PUNCTUATION = "'\N{RIGHT SINGLE QUOTATION MARK}-"


@dataclass(frozen=True, slots=True)
class WordSearch:
    """Beam search for whole words.

    Attributes:
        vocab_size: number of rows of the model's embedding table.
        max_tokens: maximum length of a word, in tokens.
    """

    tokenizer: Tokenizer
    submit: Submit
    vocab_size: int
    top_k: int
    max_tokens: int

    async def fill(self, text: str, encoded: EncodedText, mask: int) -> list[WordFill]:
        """Return words for a mask, best first. The errors are those of `submit`."""
        slot = self.tokenizer.mask_slot(text, encoded, mask)
        lengths = range(1, self.max_tokens + 1)
        found = await gather_or_cancel(
            self._search_length(length, encoded, mask, slot) for length in lengths
        )
        best: dict[str, tuple[float, tuple[int, ...], TokenText]] = {}
        for ids, log_prob in (word for words in found for word in words):
            piece = self.tokenizer.detokenizer.join(ids)
            if piece.word not in best or log_prob > best[piece.word][0]:
                best[piece.word] = (log_prob, ids, piece)
        fills = []
        ranked = sorted(best.values(), key=lambda word: -word[0])
        for log_prob, ids, piece in ranked[: self.top_k]:
            token = ids[0] if len(ids) == 1 else NO_SINGLE_TOKEN
            shown = slot.fill_with(piece)
            fills.append(WordFill(math.exp(log_prob), token, *shown, log_prob=log_prob, tokens=ids))
        return fills

    async def _search_length(
        self, length: int, encoded: EncodedText, mask: int, slot: MaskSlot
    ) -> Sequence[tuple[tuple[int, ...], float]]:
        """Return the best words of `length` tokens with their log-probabilities."""
        width = self.top_k if length == 1 else BEAM_WIDTH
        top_k = min(self.vocab_size, _MIN_CANDIDATES + _CANDIDATES_PER_WORD * width)
        words: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for _ in range(length):
            if not words:  # no candidate starts or continues a word
                break
            passes = [self._model_pass(encoded, mask, length, ids, top_k) for ids, _ in words]
            outputs = await self.submit(passes)
            expanded = []
            for (ids, log_prob), output in zip(words, outputs, strict=True):
                allowed = [
                    ((*ids, token), log_prob + more)
                    for token, more in zip(
                        output.top_ids[0].tolist(), output.top_log_probs[0].tolist(), strict=True
                    )
                    if self._is_allowed(ids, token, length, slot)
                ]
                expanded += allowed[:width]
            words = sorted(expanded, key=lambda word: -word[1])[:width]
        return words

    def _model_pass(
        self, encoded: EncodedText, mask: int, length: int, ids: tuple[int, ...], top_k: int
    ) -> ModelPass:
        masks = [self.tokenizer.mask_token_id] * (length - len(ids))
        position = encoded.mask_positions[mask : mask + 1] + len(ids)
        text = encoded.replace_mask(mask, [*ids, *masks])
        return ModelPass(text.input_ids, position, top_k, no_targets(1), text.token_types)

    def _is_allowed(self, ids: tuple[int, ...], token: int, length: int, slot: MaskSlot) -> bool:
        """Return whether a token may follow the first tokens of a word of a length."""
        if token in self.tokenizer.special_token_ids:
            return False
        text, word, continuation, starts, ends = self.tokenizer.detokenizer[token]
        if ends is not None and ends != (len(ids) + 1 == length):
            return False
        if ids:
            before = self.tokenizer.detokenizer[ids[-1]].word
            joins = continuation is not None and not divides(before[-1:], continuation[:1])
            return joins and _is_word_text(continuation or "")
        if slot.unspaced and starts and text != word:  # the text has no space for the token's
            return False
        bare = slot.glued or slot.is_first
        return (starts or (bare and text == continuation)) and (
            word[:1].isalnum() and _is_word_text(word)
        )


def max_word_passes(max_tokens: int) -> int:
    return sum(1 + (length - 1) * BEAM_WIDTH for length in range(1, max_tokens + 1))


def _is_word_text(text: str) -> bool:
    """Return whether a text has only letters, digits, combining marks and word punctuation."""
    return bool(text) and all(
        character.isalnum()
        or character in _WORD_PUNCTUATION
        or unicodedata.category(character).startswith("M")
        for character in text
    )

"""Tokenization of client texts with early rejection of overlong texts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fillmask.arrays import IntArray
from fillmask.errors import InvalidRequestError, quote
from fillmask.observability.request_context import READS_GOLDEN, notice
from fillmask.parameters.texts import InputText, TextPair, Truncation
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords
from fillmask.tokenization.encoded_tokens import EncodedTokens
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.truncation import shorten, truncate
from fillmask.tokenization.windows import TokenWindow, Window, split_into_windows, split_tokens

# Texts of white space or unknown words have many characters per token. No natural language has more
# than 64 characters per token. The reader rejects longer texts without tokenizing them, because
# tokenization takes time.
MAX_CHARS_PER_TOKEN = 64
# the length of 50 pages, which take about 50 ms to tokenize
MAX_WINDOWED_CHARS = 200_000
_WINDOW, _DEFAULTS = "on_long_text to window", Truncation()


class TextReader:
    """Reader that tokenizes texts and pairs and rejects those that the model cannot read.

    A `label` is the name of a text in error messages. Each method raises an InvalidRequestError for
    a text that is too long, has no masks or words to read, or has another special token.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens

    def read_masked(self, text: InputText, label: str) -> EncodedText:
        """Tokenize a text with at least one mask."""
        self._check_pair(text, label)
        self._check_chars(text, label, _WINDOW)
        encoded = self._tokenizer.encode(text)
        self.check_tokens(len(encoded.input_ids), label, _WINDOW)
        if not encoded.mask_spans:
            raise self._no_mask(label)
        self._check_read(text, encoded.input_ids, label, masks=len(encoded.mask_spans))
        return encoded

    def read_windows(self, text: InputText, label: str, spare_tokens: int) -> list[Window]:
        """Tokenize a text with at least one mask. Split an overlong text into windows.

        Args:
            spare_tokens: number of tokens that stay free in each window, for masks that become
                several tokens.
        """
        self._check_pair(text, label)
        self._check_windowed_chars(text, label)
        words = self._tokenizer.encode_words(text)
        mask_token_id = self._tokenizer.mask_token_id
        is_mask = words.input_ids[words.positions] == mask_token_id
        if not is_mask.any():
            raise self._no_mask(label)
        self._check_read(text, words.input_ids, label, masks=int(is_mask.sum()))
        room = self._max_tokens - spare_tokens
        if len(words.input_ids) <= room:
            return [Window(self._tokenizer.encode(text))]
        self._check_windowed_pair(words, is_mask, label)
        longest = self._max_tokens - len(words.input_ids) + int((words.parts == 0).sum())
        if spare_tokens >= longest:
            raise InvalidRequestError(
                f"{label} has room for at most {longest} tokens in place of a mask "
                f"(got {spare_tokens + 1}); use shorter targets."
            )
        return split_into_windows(words, mask_token_id, room)

    def read_words(self, text: InputText, label: str) -> EncodedWords:
        """Tokenize a text without masks and find its words."""
        self._check_pair(text, label)
        self._check_chars(text, label)
        words = self._tokenizer.encode_words(text)
        self.check_tokens(len(words.input_ids), label)
        if self._tokenizer.mask_token_id in words.input_ids[words.positions]:
            mask_token = self._tokenizer.mask_token
            raise InvalidRequestError(f"{label} has a mask; remove {mask_token} to score the text.")
        if not len(words.positions):
            raise self._no_tokens(label)
        self._check_read(text, words.input_ids, label, masks=0)
        return words

    def read_tokens(
        self, text: InputText, label: str, *, windowed: bool
    ) -> tuple[EncodedTokens, list[TokenWindow]]:
        """Tokenize a text to label its tokens, as one window or as several.

        Args:
            windowed: whether a single text that exceeds the model's input is divided.
        """
        self._check_pair(text, label)
        cure = _WINDOW if isinstance(text, str) else ""
        windowed = windowed and isinstance(text, str)
        if windowed:
            self._check_windowed_chars(text, label)
        else:
            self._check_chars(text, label, cure)
        tokens = self._tokenizer.encode_tokens(text)
        if not len(tokens.positions):
            raise self._no_tokens(label)
        self._check_read(text, tokens.input_ids, label)
        if windowed:
            return tokens, split_tokens(tokens, self._max_tokens)
        self.check_tokens(len(tokens.input_ids), label, cure)
        return tokens, [TokenWindow(tokens.input_ids, tokens.token_types, tokens.positions)]

    def read_plain(
        self,
        text: InputText,
        label: str,
        truncation: Truncation = _DEFAULTS,
        *,
        blank: bool = False,
    ) -> EncodedText:
        """Tokenize a text to classify, with or without masks.

        Args:
            truncation: what becomes of a text that exceeds the model's input.
            blank: whether the text may have no tokens.
        """
        self._check_pair(text, label)
        side = truncation.side or self._tokenizer.truncation_side
        parts = [text.text, text.text_pair] if isinstance(text, TextPair) else [text]
        if truncation.truncate:
            kept = [shorten(one, self._max_tokens, side, self._count) for one in parts]
            text = TextPair(*kept) if isinstance(text, TextPair) else kept[0]
        else:
            self._check_chars(text, label, truncation.cure)
        encoded = self._tokenizer.encode(text)
        tokens = len(encoded.input_ids)
        self._check_read(text, encoded.input_ids, label)
        if truncation.truncate and tokens > self._max_tokens:
            words = self._tokenizer.encode_words(text)
            known = f"more than {self._max_tokens} tokens"
            notice("truncated_texts", 1, f"{label} has {known} and loses some.")
            growth = [len(one) / max(1, len(short)) for one, short in zip(parts, kept, strict=True)]
            return truncate(words, self._max_tokens, label, side, [*growth, 1])
        self.check_tokens(tokens, label, truncation.cure)
        if tokens == self._tokenizer.count_special_tokens(text) and not blank:
            raise self._no_tokens(label)
        return encoded

    def _count(self, text: str) -> int:
        tokenizer = self._tokenizer
        return len(tokenizer.encode(text).input_ids) - tokenizer.count_special_tokens(text)

    def check_tokens(self, tokens: int, label: str, cure: str = "", cause: str = "") -> None:
        """Reject a text that exceeds the model's input.

        Args:
            cure: what a client sets so that the model reads a part of the text, if anything.
            cause: part of the message that explains any tokens beyond the tokens of the text.
        """
        if tokens > self._max_tokens:
            raise InvalidRequestError(
                f"{label} must have at most {self._max_tokens} tokens, special tokens included "
                f"(got {tokens}{cause}); shorten it{cure and f' or set {cure}'}."
            )

    def _check_read(
        self, text: InputText, input_ids: IntArray, label: str, *, masks: int | None = None
    ) -> None:
        """Notice, or reject, what the model does not read as the client wrote it.

        Args:
            masks: number of masks of a text that needs a known word. None for other texts.
        """
        tokenizer = self._tokenizer
        if READS_GOLDEN.get():
            return
        if unknown := tokenizer.count_unknown(input_ids):
            read = len(input_ids) - tokenizer.count_special_tokens(text)
            if masks is not None and unknown == read - masks:
                raise InvalidRequestError(
                    f"{label} has no word that the model's vocabulary knows; write it as the model "
                    "reads it. Some models of proteins, for example, read capital letters with "
                    "spaces between them."
                )
            notice(
                "unknown_tokens",
                unknown,
                f"{label} has {unknown} unknown tokens of {read}, which the vocabulary lacks.",
            )
        if typed := tokenizer.find_typed(str(text)):
            if tokenizer.special_tokens == "refuse":
                raise InvalidRequestError(
                    f"{label} has the special token {quote(typed[0])}, which this bundle does not "
                    "read; remove it, or export the bundle with --special-tokens read or literal."
                )
            notice(
                "literal_special_tokens",
                len(typed),
                f"{label} has {quote(typed[0])}, which the model reads as characters.",
            )

    def _check_pair(self, text: InputText, label: str) -> None:
        if isinstance(text, TextPair) and not self._tokenizer.reads_pairs:
            raise InvalidRequestError(
                f"{label} is a pair, but this model reads only single texts; remove text_pair."
            )

    def _check_windowed_pair(
        self, words: EncodedWords, is_mask: NDArray[np.bool_], label: str
    ) -> None:
        """Reject a pair whose second text has a mask or takes more than half of a window."""
        if is_mask[words.parts == 1].any():
            raise InvalidRequestError(
                f"{label} exceeds the model's input and has a mask in text_pair; remove this mask "
                "or shorten the pair."
            )
        second = int((words.parts == 1).sum())
        if second > self._max_tokens // 2:
            raise InvalidRequestError(
                f"{label}.text_pair must have at most {self._max_tokens // 2} tokens with windows "
                f"(got {second})."
            )

    def _check_windowed_chars(self, text: InputText, label: str) -> None:
        if len(text) > MAX_WINDOWED_CHARS:
            raise InvalidRequestError(
                f"{label} must have at most {MAX_WINDOWED_CHARS} characters with windows "
                f"(got {len(text)})."
            )

    def _no_tokens(self, label: str) -> InvalidRequestError:
        return InvalidRequestError(f"{label} has no tokens; write at least one word.")

    def _no_mask(self, label: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"{label} has no mask; write {self._tokenizer.mask_token} in place of a word."
        )

    def _check_chars(self, text: InputText, label: str, cure: str = "") -> None:
        max_chars = self._max_tokens * MAX_CHARS_PER_TOKEN
        if len(text) > max_chars:
            raise InvalidRequestError(
                f"{label} must have at most {max_chars} characters (got {len(text)}), because the "
                f"model reads at most {self._max_tokens} tokens; shorten it"
                f"{cure and f' or set {cure}'}."
            )


def text_label(field: str, index: int, texts: Sequence[object]) -> str:
    """Return the name of a text in error messages, such as inputs or inputs[3]."""
    return f"{field}[{index}]" if len(texts) > 1 else field

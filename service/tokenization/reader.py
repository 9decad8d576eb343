"""A user's text as the model reads it, refused before it costs much if it is too long."""

from collections.abc import Sequence

from service.errors import InvalidRequestError
from service.tokenization.tokenizer import EncodedText, EncodedWords, Tokenizer
from service.tokenization.windows import Window, windows

# White space and unknown words are long text in few tokens. No language comes near this length a
# token, and what is longer is refused before it costs the time to tokenize it.
MAX_CHARS_PER_TOKEN = 64
# 50 pages; tokenizing as much takes some 50 ms
MAX_WINDOWED_CHARS = 200_000


class TextReader:
    """Tokenizes texts of any length up to the model's.

    Args:
        tokenizer: the model's.
        max_tokens: longest text the model reads, special tokens included.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens

    def masked(self, text: str, where: str) -> EncodedText:
        """A text with at least one mask.

        Args:
            text: as it was written.
            where: what the caller calls it.

        Raises:
            InvalidRequestError: it is too long, has no mask, or a special token in it.
        """
        self._check_chars(text, where)
        encoded = self._tokenizer.encode(text)
        self.check_tokens(len(encoded.input_ids), where)
        if not encoded.mask_spans:
            raise self._no_mask(where)
        return encoded

    def windows(self, text: str, where: str, spare_tokens: int) -> list[Window]:
        """A text with at least one mask, of almost any length: the parts that the model sees.

        Args:
            text: as it was written.
            where: what the caller calls it.
            spare_tokens: what a mask may grow by.

        Raises:
            InvalidRequestError: it has no mask, or a special token in it, or is longer than is
                read in windows.
        """
        if len(text) > MAX_WINDOWED_CHARS:
            raise InvalidRequestError(
                f"{where} has {len(text)} characters; at most {MAX_WINDOWED_CHARS} are read in "
                "windows."
            )
        words = self._tokenizer.encode_words(text)
        mask_token_id = self._tokenizer.mask_token_id
        if mask_token_id not in words.input_ids[words.positions]:
            raise self._no_mask(where)
        room = self._max_tokens - spare_tokens
        if len(words.input_ids) <= room:
            return [Window(self._tokenizer.encode(text))]
        return windows(words, mask_token_id, room)

    def words(self, text: str, where: str) -> EncodedWords:
        """A text without a mask, and where its words are.

        Raises:
            InvalidRequestError: it is too long, has a mask or another special token in it, or no
                token.
        """
        self._check_chars(text, where)
        words = self._tokenizer.encode_words(text)
        self.check_tokens(len(words.input_ids), where)
        if self._tokenizer.mask_token_id in words.input_ids[words.positions]:
            raise InvalidRequestError(f"{where} has a mask, and what is scored is a text without.")
        if not len(words.positions):
            raise InvalidRequestError(f"{where} is nothing to the tokenizer.")
        return words

    def check_tokens(self, tokens: int, where: str, what: str = "") -> None:
        """Refuse what is longer than the model reads.

        Args:
            tokens: of the text, special ones included.
            where: what the caller calls it.
            what: what makes it as long, if that is not the text alone.

        Raises:
            InvalidRequestError: it is longer.
        """
        if tokens > self._max_tokens:
            raise InvalidRequestError(
                f"{where} has {tokens} tokens{what}, special tokens included; the model reads at "
                f"most {self._max_tokens}."
            )

    def _no_mask(self, where: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"{where} has no mask: write {self._tokenizer.mask_token} where a word is wanted."
        )

    def _check_chars(self, text: str, where: str) -> None:
        max_chars = self._max_tokens * MAX_CHARS_PER_TOKEN
        if len(text) > max_chars:
            raise InvalidRequestError(
                f"{where} has {len(text)} characters; the model reads at most {self._max_tokens} "
                f"tokens, in at most {max_chars} characters."
            )


def text_label(called: str, index: int, texts: Sequence[object]) -> str:
    """What the caller calls one of its texts, for errors."""
    return f"{called}[{index}]" if len(texts) > 1 else called

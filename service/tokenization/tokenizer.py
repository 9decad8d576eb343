"""Text to ids and back: where the masks are, and what the text reads with a mask filled."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_

import numpy as np
from tokenizers import Encoding

from service.arrays import IntArray
from service.bundles.bundle import Bundle
from service.errors import BundleError, InvalidRequestError, quote
from service.tokenization.detokenizer import Detokenizer, MaskSlot, TokenText
from service.tokenization.tokenizer_file import load_tokenizer

# A text is encoded on the thread that asks; tokenizers' own pool would take CPUs from the batches.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# Encoding this many characters takes 0.2 ms in English and 0.7 ms in Chinese; going to another
# thread and back takes 0.03 ms. `encode` keeps the interpreter lock; `encode_batch` releases it.
LONG_TEXT_CHARS = 1_000
# no word of any language is as long, and each of thousands of targets is tokenized
MAX_TARGET_CHARS = 256


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """A text as the model reads it.

    Attributes:
        input_ids: (T,) int64, special tokens included.
        mask_positions: (m,) int64, ascending positions in input_ids.
        mask_spans: for each mask its first character in the text and the one after its last.
    """

    input_ids: IntArray
    mask_positions: IntArray
    mask_spans: tuple[tuple[int, int], ...]

    def widened(self, mask: int, token_ids: Sequence[int]) -> IntArray:
        """The ids with these in place of the mask of this number."""
        position = self.mask_positions[mask]
        inserted = np.array(token_ids, dtype=np.int64)
        return np.concatenate([self.input_ids[:position], inserted, self.input_ids[position + 1 :]])


@dataclass(frozen=True, slots=True, eq=False)
class EncodedWords:
    """A text, and where its words are.

    Attributes:
        input_ids: (T,) int64, special tokens included.
        positions: (t,) int64, of the text's own tokens, ascending.
        spans: for each of those its first character in the text and the one after its last.
        words: (t,) int64, a number for each word, ascending.
    """

    input_ids: IntArray
    positions: IntArray
    spans: tuple[tuple[int, int], ...]
    words: IntArray


class Tokenizer:
    """The bundle's tokenizer, in which the mask is the only special token a text can hold.

    Truncation and padding that the file asks for are switched off.

    Args:
        tokenizer_json: content of a Hugging Face tokenizer.json.
        mask_token: the text that marks a mask.
        mask_token_id: its id.
        special_token_ids: ids that no ordinary text has, the mask's among them.

    Raises:
        BundleError: the file is not a tokenizer, or its mask token has another id.
    """

    def __init__(
        self,
        tokenizer_json: bytes,
        mask_token: str,
        mask_token_id: int,
        special_token_ids: Sequence[int],
    ) -> None:
        try:
            loaded = load_tokenizer(tokenizer_json, mask_token, mask_token_id)
            self._pieces = Detokenizer(loaded, mask_token)
        except Exception as error:  # tokenizers raises bare Exception
            raise BundleError(
                "The bundle is refused: tokenizer.json cannot be read as a tokenizer."
            ) from error
        self._tokenizer = loaded.tokenizer
        if self._tokenizer.token_to_id(mask_token) != mask_token_id:
            raise BundleError(
                f"The bundle is refused: in tokenizer.json {quote(mask_token)} does not have the "
                f"id {mask_token_id} that bundle.json gives it."
            )
        self.mask_token = mask_token
        self.mask_token_id = mask_token_id
        self.special_token_ids = frozenset(special_token_ids)
        self._unknown_id = loaded.unknown_id
        self._forbidden_ids = self.special_token_ids - {mask_token_id, loaded.unknown_id}

    @classmethod
    def of(cls, bundle: Bundle) -> "Tokenizer":
        """A bundle's; raises BundleError as above."""
        return cls(
            bundle.tokenizer_path.read_bytes(),
            bundle.mask_token,
            bundle.mask_token_id,
            bundle.special_token_ids,
        )

    def encode(self, text: str) -> EncodedText:
        """Tokenize one text and find its masks, of which there may be none.

        Raises:
            InvalidRequestError: the text has a special token other than the mask in it.
        """
        encoding = self._encode_text(text)
        ids, framing = encoding.ids, encoding.special_tokens_mask
        positions = [p for p in _positions(ids, self.mask_token_id) if not framing[p]]
        offsets = encoding.offsets
        return EncodedText(
            input_ids=np.array(ids, dtype=np.int64),
            mask_positions=np.array(positions, dtype=np.int64),
            mask_spans=tuple(_trim(text, *offsets[p]) for p in positions),
        )

    def encode_words(self, text: str) -> EncodedWords:
        """Tokenize one text and find its words, as the tokenizer cuts it before looking up pieces.

        Raises:
            InvalidRequestError: the text has a special token other than the mask in it.
        """
        encoding = self._encode_text(text)
        ids, framing = encoding.ids, encoding.special_tokens_mask
        positions = [position for position, special in enumerate(framing) if not special]
        offsets, words = encoding.offsets, encoding.word_ids
        return EncodedWords(
            input_ids=np.array(ids, dtype=np.int64),
            positions=np.array(positions, dtype=np.int64),
            spans=tuple(_trim(text, *offsets[p]) for p in positions),
            words=np.array([words[p] for p in positions], dtype=np.int64),
        )

    def target_ids(self, target: str) -> tuple[int, ...]:
        """The tokens of a target, at least one and all ordinary.

        What a token reads comes first, so that `token_str` of a fill is the target that means its
        token; then how the tokenizer reads the target.

        Raises:
            InvalidRequestError: it has no tokens, or one that no fill can have.
        """
        if (token_id := self._pieces.find(target)) is not None:
            ids = [token_id]
        elif len(target) > MAX_TARGET_CHARS:
            raise InvalidRequestError(
                f"The target {quote(target)} has {len(target)} characters; at most "
                f"{MAX_TARGET_CHARS} are allowed."
            )
        else:
            ids = self._encode(target, special_tokens=False).ids
        if not ids:
            raise InvalidRequestError(f"The target {quote(target)} is nothing to the tokenizer.")
        if token_id is None and self._unknown_id in ids:
            raise InvalidRequestError(
                f"The target {quote(target)} has characters that the model's vocabulary lacks."
            )
        if self.special_token_ids.intersection(ids):
            raise InvalidRequestError(
                f"The target {quote(target)} has a special token of the model, which is no word."
            )
        return tuple(map(int, ids))

    def phrase(self, target: str, token_ids: Sequence[int]) -> TokenText:
        """A target as a piece of text: as the vocabulary has it if it is one token."""
        if len(token_ids) == 1:
            return self._pieces[token_ids[0]]
        return self._pieces.phrase(target, token_ids)

    def piece(self, token_id: int) -> TokenText:
        """The token as text, alone and in place of a mask."""
        return self._pieces[token_id]

    def word(self, token_ids: Sequence[int]) -> TokenText:
        """A token and its continuations as one piece."""
        return self._pieces.word(token_ids)

    def token_str(self, token_id: int) -> str:
        """The token as text.

        A piece that continues a word keeps its mark, as in "##ing"; one whose space is part of it
        keeps that, as in " Paris".
        """
        return self._pieces[token_id].text

    def blank(self, text: str, span: tuple[int, int]) -> "MaskSlot":
        """The mask at this span, to be filled."""
        return MaskSlot(text, span, self._pieces)

    def _encode_text(self, text: str) -> Encoding:
        """A text as the model reads it; refused if a special token other than the mask is in it."""
        encoding = self._encode(text, special_tokens=True)
        framing = encoding.special_tokens_mask
        self._refuse_special_tokens(compress(encoding.ids, map(not_, framing)))
        return encoding

    def _encode(self, text: str, *, special_tokens: bool) -> Encoding:
        if len(text) < LONG_TEXT_CHARS:
            return self._tokenizer.encode(text, add_special_tokens=special_tokens)
        return self._tokenizer.encode_batch([text], add_special_tokens=special_tokens)[0]

    def _refuse_special_tokens(self, ids: Iterable[int]) -> None:
        for token_id in self._forbidden_ids.intersection(ids):
            token = quote(self.token_str(token_id))
            raise InvalidRequestError(
                f"{token} is a special token of the model and cannot be part of a text; "
                f"only the mask token {self.mask_token} can."
            )


def _positions(ids: list[int], token_id: int) -> Iterator[int]:
    """Where the token is, ascending; by list.index, ten times as fast as looking at each."""
    position = -1
    for _ in range(ids.count(token_id)):
        position = ids.index(token_id, position + 1)
        yield position


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space that some tokenizers count as part of the mask."""
    span = text[start:end]
    if span.isspace():
        return start, end
    return start + len(span) - len(span.lstrip()), end - (len(span) - len(span.rstrip()))

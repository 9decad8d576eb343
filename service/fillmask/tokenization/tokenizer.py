"""Tokenizer of a bundle, which converts text to ids and ids to text."""

import os
import re
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import not_

import numpy as np
from tokenizers import Encoding

from fillmask.arrays import IntArray, int_array
from fillmask.bundles.bundle import Bundle
from fillmask.bundles.description import SpecialTokens, TruncationSide
from fillmask.errors import BundleError, InvalidRequestError, quote
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.detokenizer import PIECE_MARK, Detokenizer, MaskSlot, TokenText
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords, positions_of, token_spans
from fillmask.tokenization.encoded_tokens import EncodedTokens
from fillmask.tokenization.tokenizer_file import check_template, is_library_failure, load_tokenizer
from fillmask.tokenization.word_cache import WordCache
from fillmask.tokenization.words import word_indices

# The calling thread tokenizes, because the library's thread pool competes with batches for CPUs.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# Encoding this many characters takes 0.2 ms in English and 0.7 ms in Chinese. A switch to another
# thread and back takes 0.03 ms. `encode` keeps the interpreter lock, and `encode_batch`
# releases the lock.
LONG_TEXT_CHARS = 1_000
# No word of any language has more characters. The limit is small, because a request may have
# thousands of targets to tokenize.
MAX_TARGET_CHARS = 256


class Tokenizer:
    """A tokenizer in which the mask is the only special token that a text can contain.

    The tokenizer ignores the truncation and padding settings of tokenizer.json.

    Args:
        special_token_ids: ids of all special tokens, including the mask.
        token_types: number of token types that the model distinguishes.
        special_tokens: how a text with special tokens other than the mask is read, as characters
            ("literal"), as these tokens ("read") or not at all ("refuse").
        truncation_side: side at which truncation removes tokens.

    Raises:
        BundleError: tokenizer.json is not a tokenizer, or its mask token or template is wrong.
    """

    def __init__(
        self,
        tokenizer_json: bytes,
        mask_token: str,
        mask_token_id: int,
        special_token_ids: Sequence[int],
        *,
        pairs: bool = False,
        token_types: int = 1,
        special_tokens: SpecialTokens = "literal",
        truncation_side: TruncationSide = "right",
    ) -> None:
        special_ids = frozenset(special_token_ids) | {mask_token_id}
        try:
            reads_special = special_tokens == "read"
            loaded = load_tokenizer(
                tokenizer_json, mask_token, mask_token_id, reads_special=reads_special
            )
            self.detokenizer = Detokenizer(loaded, mask_token)
            forbidden_ids = special_ids - {loaded.unknown_id}
            has_exact_words = not reads_special and WordCache.is_exact(
                loaded, mask_token, forbidden_ids
            )
        except BaseException as error:  # the tokenizers library raises bare Exception
            if not isinstance(error, Exception) and not is_library_failure(error):
                raise
            raise BundleError(
                "The bundle is invalid: tokenizer.json is not a valid tokenizer; "
                "export the bundle again."
            ) from error
        self._tokenizer = loaded.tokenizer
        found_id = self._tokenizer.token_to_id(mask_token)
        if found_id != mask_token_id:
            raise BundleError(
                f"The bundle is invalid: {quote(mask_token)} has the id {found_id} in "
                f"tokenizer.json but {mask_token_id} in bundle.json; export the bundle again."
            )
        self.mask_token = mask_token
        self.mask_token_id = mask_token_id
        self.special_token_ids = frozenset(special_token_ids)
        self.reads_pairs = pairs
        self.has_token_types = token_types > 1
        self._unknown_id = loaded.unknown_id
        self._forbidden_ids = frozenset() if reads_special else forbidden_ids - {mask_token_id}
        self.special_tokens, self.truncation_side = special_tokens, truncation_side
        added = self._tokenizer.get_added_tokens_decoder().values()
        marked = "|".join(sorted(re.escape(one.content) for one in added if one.special))
        self._typed = re.compile(marked) if marked and not reads_special else None
        check_template(self._tokenizer, mask_token, mask_token_id, pairs=pairs)
        self.has_spaces_in_tokens = self.detokenizer.spaces_in_tokens
        self._starts_with_space = self._find_start()
        self._words = None
        if has_exact_words:
            self._words = WordCache(loaded, mask_token, mask_token_id)

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> "Tokenizer":
        """Load the tokenizer of a bundle. The errors are those of the constructor."""
        return cls(
            bundle.read_tokenizer(),
            bundle.mask_token,
            bundle.mask_token_id,
            bundle.special_token_ids,
            pairs=bundle.pairs,
            token_types=bundle.token_types,
            special_tokens=bundle.special_tokens,
            truncation_side=bundle.truncation_side,
        )

    def encode(self, text: InputText) -> EncodedText:
        """Tokenize a text or a pair and find its masks.

        Raises:
            InvalidRequestError: the text contains a special token other than the mask, or words
                that the tokenizer cannot read.
        """
        # the cache keeps the interpreter lock, which `_encode` releases for long texts
        if self._words is not None and isinstance(text, str) and len(text) < LONG_TEXT_CHARS:
            encoded = self._words.encode(text)
            if encoded is not None:
                return encoded
        encoding = self._encode_text(text)
        ids, is_special = encoding.ids, encoding.special_tokens_mask
        positions = [p for p in positions_of(ids, self.mask_token_id) if not is_special[p]]
        return EncodedText(
            input_ids=int_array(ids),
            mask_positions=int_array(positions),
            mask_spans=token_spans(text, encoding, positions),
            token_types=self._token_types(text, encoding),
            second_start=0 if isinstance(text, str) else text.second_start,
        )

    def encode_words(self, text: InputText) -> EncodedWords:
        """Tokenize a text or a pair and find its words. The errors are those of `encode`."""
        encoding = self._encode_text(text)
        ids, is_special = encoding.ids, encoding.special_tokens_mask
        positions = [position for position, special in enumerate(is_special) if not special]
        spans = token_spans(text, encoding, positions)
        sequence_ids, word_ids = encoding.sequence_ids, encoding.word_ids
        # the words of each part count from 0
        own_words = [(sequence_ids[p], word_ids[p]) for p in positions]
        return EncodedWords(
            input_ids=int_array(ids),
            positions=int_array(positions),
            spans=spans,
            words=word_indices(str(text), spans, own_words),
            parts=np.array([sequence_ids[p] for p in positions], dtype=np.int64),
            token_types=self._token_types(text, encoding),
        )

    def encode_tokens(self, text: InputText) -> EncodedTokens:
        """Tokenize a text or a pair, with each token on its own, or raise as `encode` does."""
        encoding = self._encode_text(text)
        types = self._token_types(text, encoding)
        return EncodedTokens.of(text, encoding, self.detokenizer, self._unknown_id, types)

    def count_unknown(self, input_ids: IntArray) -> int:
        return int(np.count_nonzero(input_ids == self._unknown_id))

    def find_typed(self, text: str) -> list[str]:
        """Return the special tokens other than the mask that a text has as characters."""
        return [] if self._typed is None else self._typed.findall(text)

    def count_special_tokens(self, text: InputText) -> int:
        """Return the number of special tokens that the tokenizer adds to a text or a pair."""
        return self._tokenizer.num_special_tokens_to_add(isinstance(text, TextPair))

    def encode_target(self, target: str, *, glued: bool = False) -> tuple[int, ...]:
        """Return the ids of a target's tokens.

        A target that begins with a letter or a digit means a word. "##" before it means a piece
        that continues a word, and a space before it a word after a space. A target that equals the
        text of a token means that token. The method tokenizes any other target.

        Args:
            glued: whether the word follows no space, where that makes a difference.

        Raises:
            InvalidRequestError: the target is too long, has no tokens, or contains an unknown or
                special token.
        """
        ids, is_token = self._target_ids(target, glued=glued)
        if not ids:
            raise InvalidRequestError(
                f"The target {quote(target)} has no tokens; write at least one word."
            )
        if not is_token and self._unknown_id in ids:
            raise InvalidRequestError(
                f"The target {quote(target)} has characters that the model's vocabulary lacks; "
                "remove the target."
            )
        if self.special_token_ids.intersection(ids):
            raise InvalidRequestError(
                f"The target {quote(target)} has a special token of the model; write only ordinary "
                "text."
            )
        return tuple(map(int, ids))

    def _target_ids(self, target: str, *, glued: bool) -> tuple[Sequence[int], bool]:
        """Return the ids of a target, and whether it names one token."""
        detokenizer, text = self.detokenizer, target
        piece = target.removeprefix(PIECE_MARK)
        if piece != target and detokenizer.is_word(piece):
            text, glued = piece, True
        spaced = detokenizer.is_word(text)
        name = f" {text}" if spaced and not glued else text
        if (token_id := detokenizer.find(name)) is not None:
            return [token_id], True
        if len(target) > MAX_TARGET_CHARS:
            raise InvalidRequestError(
                f"The target {quote(target)} must have at most {MAX_TARGET_CHARS} characters "
                f"(got {len(target)})."
            )
        if spaced and glued and not self._starts_with_space:
            spaced = False  # a text starts without a space, too
        ids = self._encode(f" {text}" if spaced else text, special_tokens=False).ids
        return (detokenizer.without_space(ids) if spaced and glued and ids else None) or ids, False

    def target_text(self, target: str, token_ids: Sequence[int]) -> TokenText:
        """Return the text of a target. A target of one token has the text of the token."""
        if len(token_ids) == 1:
            return self.detokenizer[token_ids[0]]
        return self.detokenizer.phrase(target, token_ids)

    def vocabulary_token(self, token_id: int) -> str:
        """Return a token as in the vocabulary, or its id in brackets for an unused row."""
        return self.detokenizer.name(token_id) or f"[{token_id}]"

    def token_str(self, token_id: int) -> str:
        """Return the text of a token alone, with its mark or space, as in "##ing" or " Paris"."""
        return self.detokenizer[token_id].text

    def mask_slot(self, text: str, encoded: EncodedText, mask: int = 0) -> MaskSlot:
        """Return the position of a mask in a text, in which the masks after it may be filled."""
        return MaskSlot(
            text,
            encoded.mask_spans[mask],
            self.detokenizer,
            encoded.second_start,
            starts_with_space=self._starts_with_space,
        )

    def glued_masks(self, text: str, encoded: EncodedText) -> list[bool]:
        """Return whether a word in place of each mask of a text has no space before it."""
        masks = range(len(encoded.mask_spans))
        return [self.mask_slot(text, encoded, mask).glued for mask in masks]

    def _find_start(self) -> bool:
        """Return whether the first token of a text has a space, as if another word preceded it."""
        try:
            ids = self._encode("a", special_tokens=False).ids
        except InvalidRequestError:
            return False
        return bool(ids) and self.detokenizer[ids[0]].starts

    def _token_types(self, text: InputText, encoding: Encoding) -> IntArray | None:
        is_typed = self.has_token_types and not isinstance(text, str)
        return int_array(encoding.type_ids) if is_typed else None

    def _encode_text(self, text: InputText) -> Encoding:
        """Tokenize a text and reject special tokens other than the mask."""
        encoding = self._encode(text, special_tokens=True)
        is_special = encoding.special_tokens_mask
        self._reject_special_tokens(compress(encoding.ids, map(not_, is_special)))
        return encoding

    def _encode(self, text: InputText, *, special_tokens: bool) -> Encoding:
        first, second = (text, None) if isinstance(text, str) else (text.text, text.text_pair)
        try:
            if len(text) < LONG_TEXT_CHARS:
                return self._tokenizer.encode(first, second, add_special_tokens=special_tokens)
            one = first if second is None else (first, second)
            return self._tokenizer.encode_batch([one], add_special_tokens=special_tokens)[0]
        except BaseException as error:
            # for example, the text has unknown words and the vocabulary has no unknown token
            if not is_library_failure(error):
                raise
            raise InvalidRequestError(
                "The model's tokenizer cannot read the text; write it in other words."
            ) from error

    def _reject_special_tokens(self, ids: Iterable[int]) -> None:
        for token_id in self._forbidden_ids.intersection(ids):
            token = quote(self.token_str(token_id))
            raise InvalidRequestError(
                f"{token} is a special token of the model other than {self.mask_token}; remove it "
                "from the text."
            )

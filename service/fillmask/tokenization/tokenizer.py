"""Tokenizer of a bundle, which converts text to ids and ids to text."""

import os
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import not_

import numpy as np
from tokenizers import Encoding

from fillmask.arrays import IntArray, int_array
from fillmask.bundles.bundle import Bundle
from fillmask.errors import BundleError, InvalidRequestError, quote
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.detokenizer import Detokenizer, MaskSlot, TokenText
from fillmask.tokenization.encoded_text import EncodedText, EncodedWords
from fillmask.tokenization.spans import pair_spans, positions_of, text_spans
from fillmask.tokenization.template import check_template
from fillmask.tokenization.tokenizer_file import is_library_failure, load_tokenizer
from fillmask.tokenization.word_cache import WordCache

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
        tokenizer_json: content of a Hugging Face tokenizer.json.
        special_token_ids: ids of all special tokens, including the mask.
        pairs: whether the model reads pairs.
        token_types: number of token types that the model distinguishes.

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
    ) -> None:
        special_ids = frozenset(special_token_ids) | {mask_token_id}
        try:
            loaded = load_tokenizer(tokenizer_json, mask_token, mask_token_id)
            self._detokenizer = Detokenizer(loaded, mask_token)
            forbidden_ids = special_ids - {loaded.unknown_id}
            has_exact_words = WordCache.is_exact(loaded, mask_token, forbidden_ids)
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
        self._has_token_types = token_types > 1
        self._unknown_id = loaded.unknown_id
        self._forbidden_ids = forbidden_ids - {mask_token_id}
        check_template(self._tokenizer, mask_token, mask_token_id, pairs=pairs)
        self._words = None
        if has_exact_words:
            self._words = WordCache(loaded, mask_token, mask_token_id)

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> "Tokenizer":
        """Load the tokenizer of a bundle.

        Raises:
            BundleError: tokenizer.json is not a tokenizer, or its mask token has another id.
        """
        return cls(
            bundle.read_tokenizer(),
            bundle.mask_token,
            bundle.mask_token_id,
            bundle.special_token_ids,
            pairs=bundle.pairs,
            token_types=bundle.token_types,
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
        if isinstance(text, str):
            spans = text_spans(text, encoding, positions)
            return EncodedText(int_array(ids), int_array(positions), spans)
        return EncodedText(
            input_ids=int_array(ids),
            mask_positions=int_array(positions),
            mask_spans=pair_spans(text, encoding, positions),
            token_types=self._token_types(encoding),
            second_start=text.second_start,
        )

    def encode_words(self, text: InputText) -> EncodedWords:
        """Tokenize a text or a pair and find the words of the pre-tokenizer.

        Raises:
            InvalidRequestError: the text contains a special token other than the mask, or words
                that the tokenizer cannot read.
        """
        encoding = self._encode_text(text)
        ids, is_special = encoding.ids, encoding.special_tokens_mask
        positions = [position for position, special in enumerate(is_special) if not special]
        word_ids = encoding.word_ids
        words = np.array([word_ids[p] for p in positions], dtype=np.int64)
        if isinstance(text, str):
            spans = text_spans(text, encoding, positions)
            parts, token_types = np.zeros_like(words), None
        else:
            spans = pair_spans(text, encoding, positions)
            sequence_ids = encoding.sequence_ids
            parts = np.array([sequence_ids[p] for p in positions], dtype=np.int64)
            # the words of each part count from 0
            words += parts * (words.max(initial=0) + 1)
            token_types = self._token_types(encoding)
        return EncodedWords(
            input_ids=int_array(ids),
            positions=int_array(positions),
            spans=spans,
            words=words,
            parts=parts,
            token_types=token_types,
        )

    def count_special_tokens(self, text: InputText) -> int:
        """Return the number of special tokens that the tokenizer adds to a text or a pair."""
        return self._tokenizer.num_special_tokens_to_add(isinstance(text, TextPair))

    def encode_target(self, target: str) -> tuple[int, ...]:
        """Return the ids of a target's tokens.

        A target that equals the text of a token means that token, so that the `token_str` of a
        fill is a target for the same token. The method tokenizes any other target.

        Raises:
            InvalidRequestError: the target is too long, has no tokens, or contains an unknown or
                special token.
        """
        if (token_id := self._detokenizer.find(target)) is not None:
            ids = [token_id]
        elif len(target) > MAX_TARGET_CHARS:
            raise InvalidRequestError(
                f"The target {quote(target)} must have at most {MAX_TARGET_CHARS} characters "
                f"(got {len(target)})."
            )
        else:
            ids = self._encode(target, special_tokens=False).ids
        if not ids:
            raise InvalidRequestError(
                f"The target {quote(target)} has no tokens; write at least one word."
            )
        if token_id is None and self._unknown_id in ids:
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

    def target_text(self, target: str, token_ids: Sequence[int]) -> TokenText:
        """Return the text of a target. A target of one token has the text of the token."""
        if len(token_ids) == 1:
            return self._detokenizer[token_ids[0]]
        return self._detokenizer.phrase(target, token_ids)

    def vocabulary_token(self, token_id: int) -> str:
        """Return a token as in the vocabulary, or its id in brackets for an unused row."""
        return self._tokenizer.id_to_token(token_id) or f"[{token_id}]"

    def token_text(self, token_id: int) -> TokenText:
        """Return the text of a token, alone and in place of a mask."""
        return self._detokenizer[token_id]

    def join_tokens(self, token_ids: Sequence[int]) -> TokenText:
        """Return one text for a token and the continuation tokens after it."""
        return self._detokenizer.join(token_ids)

    def token_str(self, token_id: int) -> str:
        """Return the text of a token alone.

        A token that continues a word keeps its mark, as in "##ing". A token that includes a space
        keeps the space, as in " Paris".
        """
        return self._detokenizer[token_id].text

    def mask_slot(self, text: str, encoded: EncodedText, mask: int = 0) -> MaskSlot:
        """Return the position of a mask in a text.

        Args:
            text: the client's text, in which tokens may replace the masks after this mask.
            encoded: tokens of the client's text.
            mask: index of the mask in the text, from 0.
        """
        span = encoded.mask_spans[mask]
        return MaskSlot(text, span, self._detokenizer, encoded.second_start)

    def _token_types(self, encoding: Encoding) -> IntArray | None:
        return int_array(encoding.type_ids) if self._has_token_types else None

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

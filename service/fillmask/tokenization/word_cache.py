"""Cache of whole words in front of BERT's tokenizer, for texts in ASCII."""

import re
from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer

from fillmask.arrays import int_array
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer_file import LoadedTokenizer

# 10,000 words of at most these sizes take up to 4 MiB. Almost all words of a text are among them.
MAX_WORDS = 10_000
_MAX_WORD_CHARS, _MAX_WORD_TOKENS = 32, 4
# BERT's normalizer removes other control characters.
_OTHER = re.compile(r"[^\t\n\r -~]")
# BERT's pre-tokenizer splits at white space and around each punctuation character.
_WORDS = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9\s]")
_UNKNOWN = "[UNK]"  # default of the tokenizers library
_MATCH_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


class WordCache:
    """Ids of words that BERT's tokenizer has converted before.

    The tokenizers library caches words of BPE, but not of WordPiece. In ASCII, BERT's tokenizer
    depends on no character beyond a word, so the ids of a text are the ids of its words. A text of
    16 words takes 6 us instead of 34 us.

    Args:
        loaded: tokenizer for which `is_exact` returns True.
    """

    def __init__(self, loaded: LoadedTokenizer, mask_token: str, mask_token_id: int) -> None:
        self._model = loaded.tokenizer.model
        self._lowercase: bool = loaded.description["normalizer"]["lowercase"]
        self._mask_token, self._mask_token_id = mask_token, mask_token_id
        self._prefix, self._suffix = _around_mask(loaded.tokenizer, mask_token, mask_token_id)
        self._ids: dict[str, tuple[int, ...]] = {}

    @staticmethod
    def is_exact(loaded: LoadedTokenizer, mask_token: str, special_ids: Collection[int]) -> bool:
        """Return True if the cache gives the ids of a tokenizer for every text in ASCII.

        Args:
            special_ids: ids that no word of a text has.
        """
        description, tokenizer = loaded.description, loaded.tokenizer
        model = description["model"]
        # a special token may replace a token of the model that has its id
        names = [tokenizer.id_to_token(one) for one in special_ids]
        own_names = [tokenizer.model.id_to_token(one) or "" for one in special_ids]
        types = [
            (description.get(name) or {}).get("type")
            for name in ("normalizer", "pre_tokenizer", "model")
        ]
        return (
            types == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
            and tokenizer.model.token_to_id(model.get("unk_token", _UNKNOWN)) is not None
            and _mask_always_matches(description["added_tokens"], mask_token)
            and not any(name is None or _is_word(name, model) for name in (*names, *own_names))
            and [*map(tokenizer.id_to_token, tokenizer.encode(mask_token).ids)].count(mask_token)
            == 1
        )

    def encode(self, text: str) -> EncodedText | None:
        """Return the tokens of a text, or None if the text has characters beyond ASCII."""
        if not text.isascii() or _OTHER.search(text):
            return None
        ids = list(self._prefix)
        positions, spans = [], []
        start = 0
        while (mask := text.find(self._mask_token, start)) >= 0:
            self._extend(ids, text[start:mask])
            start = mask + len(self._mask_token)
            positions.append(len(ids))
            spans.append((mask, start))
            ids.append(self._mask_token_id)
        self._extend(ids, text[start:])
        ids += self._suffix
        return EncodedText(int_array(ids), int_array(positions), tuple(spans))

    def _extend(self, ids: list[int], part: str) -> None:
        known = self._ids
        for word in _WORDS.findall(part.lower() if self._lowercase else part):
            ids += known.get(word) or self._learn(word)

    def _learn(self, word: str) -> tuple[int, ...]:
        ids = tuple(token.id for token in self._model.tokenize(word))
        if len(word) <= _MAX_WORD_CHARS and len(ids) <= _MAX_WORD_TOKENS:
            if len(self._ids) >= MAX_WORDS:
                self._ids.clear()
            self._ids[word] = ids
        return ids


def _mask_always_matches(added_tokens: list[dict[str, Any]], mask_token: str) -> bool:
    """Return True if the mask is an added token at each of its places, and the only one."""
    for added in added_tokens:
        content = added["content"]
        if content == mask_token:
            if any(added[name] for name in _MATCH_FLAGS):
                return False
        elif not added["special"] or mask_token in content:
            return False
        elif any(mask_token.startswith(content[i:]) for i in range(1, len(content))):
            return False  # a match of this token may end within a mask
    return True


def _is_word(token: str, model: dict[str, Any]) -> bool:
    """Return True if a token may be a word, or the end of a word."""
    prefix = model.get("continuing_subword_prefix", "##")
    return _WORDS.fullmatch(token) is not None or token.startswith(prefix)


def _around_mask(
    tokenizer: Tokenizer, mask_token: str, mask_token_id: int
) -> tuple[list[int], list[int]]:
    """Return the special tokens before and after a text."""
    ids = tokenizer.encode(mask_token).ids
    mask = ids.index(mask_token_id)
    return ids[:mask], ids[mask + 1 :]

"""Detokenization of tokens, alone and in place of a mask.

Tokenizers mark words in two ways. WordPiece marks tokens that continue a word ("##ing"). Byte-level
BPE and SentencePiece include the space before a word in its first token. In these two tokenizers,
" Paris" starts a word and "Paris" continues a word.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokenizers import decoders, pre_tokenizers

from fillmask.tokenization.tokenizer_file import LoadedTokenizer

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# characters for a space in the names of tokens, in SentencePiece and in byte-level BPE
_META_SPACE = "▁"
_BYTE_SPACE = "Ġ"
_TO_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
_FROM_BYTES = decoders.ByteLevel()


class TokenText(NamedTuple):
    """Text of one or more tokens.

    Attributes:
        text: text of the token alone.
        word: text of the token after white space or at the start of a text.
        continuation: text that the token adds to the word before it. None if the token continues no
            word.
    """

    text: str
    word: str
    continuation: str | None


class Detokenizer(dict[int, TokenText]):
    """Text of each token by id, computed at the first access."""

    def __init__(self, loaded: LoadedTokenizer, mask_token: str) -> None:
        super().__init__()
        description = loaded.description
        self._vocabulary = loaded.vocabulary
        self._decoder = loaded.tokenizer.decoder
        self._continuation_mark = description["model"].get("continuing_subword_prefix") or ""
        if not isinstance(self._continuation_mark, str):
            raise TypeError("continuing_subword_prefix must be a text")
        self._added = {
            token_id: token.content
            for token_id, token in loaded.tokenizer.get_added_tokens_decoder().items()
        }
        self._added_ids = {content: token_id for token_id, content in self._added.items()}
        parts = json.dumps([description.get("pre_tokenizer"), description.get("decoder")])
        self._byte_level = '"ByteLevel"' in parts
        self._meta_space = json.dumps(_META_SPACE) in parts
        self._spaces_in_tokens = (self._byte_level or self._meta_space) and (
            _mask_includes_space(description, mask_token)
        )

    def __missing__(self, token_id: int) -> TokenText:
        text = self._text(token_id)
        continuation: str | None = None
        word = text
        if token_id in self._added:  # added tokens never continue a word
            pass
        elif self._spaces_in_tokens:
            word = text.removeprefix(" ")
            continuation = text if word == text else None
        elif self._continuation_mark and text.startswith(self._continuation_mark):
            continuation = text.removeprefix(self._continuation_mark)
        self[token_id] = token = TokenText(text, word, continuation)
        return token

    def phrase(self, text: str, token_ids: Sequence[int]) -> TokenText:
        """Return several tokens as one text that keeps the client's spelling.

        Args:
            text: the text as the client wrote it.
        """
        if self[token_ids[0]].continuation is not None:
            return TokenText(text, text, text)
        word = text.strip()
        return TokenText(f" {word}" if self._spaces_in_tokens else word, word, None)

    def join(self, token_ids: Sequence[int]) -> TokenText:
        """Return one text for a token and the continuation tokens after it."""
        first, *rest = (self[token_id] for token_id in token_ids)
        end = "".join(token.continuation or token.text for token in rest)
        continuation = None if first.continuation is None else first.continuation + end
        return TokenText(first.text + end, first.word + end, continuation)

    def find(self, text: str) -> int | None:
        """Return the id of the token with this text or with this name in the vocabulary."""
        if (token_id := self._added_ids.get(text)) is not None:
            return token_id
        if self._byte_level:
            # "é" means the character, although "é" is also the name of a byte in the vocabulary.
            # "Ġ" occurs only in names, where it means a space.
            names = ["".join(part for part, _ in _TO_BYTES.pre_tokenize_str(text))]
            names += [text] if text.startswith(_BYTE_SPACE) else []
        else:
            names = [text.replace(" ", _META_SPACE) if self._meta_space else text]
        ids = (self._vocabulary.token_to_id(name) for name in names)
        return next((token_id for token_id in ids if token_id is not None), None)

    def _text(self, token_id: int) -> str:
        if token_id in self._added:
            return self._added[token_id]
        name = self._vocabulary.id_to_token(token_id)
        if name is None:
            return _REPLACEMENT
        if self._byte_level:  # incomplete characters become U+FFFD
            return _FROM_BYTES.decode([name])
        if self._meta_space and _META_SPACE in name:  # the decoder drops a leading space
            return name.replace(_META_SPACE, " ")
        return name if self._decoder is None else str(self._decoder.decode([name]))


class MaskSlot:
    """The position of a mask in a text, for fills with one or more tokens.

    Attributes:
        is_first: True if no word precedes the mask in a text or in its part of a pair.
    """

    __slots__ = ("_after", "_before", "_detokenizer", "_follows_space", "_word_before", "is_first")

    def __init__(
        self, text: str, span: tuple[int, int], detokenizer: Detokenizer, second_start: int
    ) -> None:
        start, end = span
        self._before, self._after = text[:start], text[end:]
        word_before = self._before.rstrip()
        self.is_first = len(word_before) <= (second_start if second_start <= start else 0)
        self._word_before = "" if self.is_first else word_before
        self._follows_space = self._word_before != self._before or not self._before
        self._detokenizer = detokenizer

    def fill(self, token_id: int) -> tuple[str, str]:
        """Return the text of a token and the client's text with the token in place of the mask."""
        return self.fill_with(self._detokenizer[token_id])

    def fill_with(self, token: TokenText) -> tuple[str, str]:
        """Return the text of a token and the client's text with the token in place of the mask.

        The text of a token keeps its continuation mark, as in "##ing", or its space, as in
        " Paris". The client's text loses only the mask and any white space before a continuation.
        """
        text, word, continuation = token
        if continuation is not None and self._word_before:
            return text, f"{self._word_before}{continuation}{self._after}"
        return text, f"{self._before}{word if self._follows_space else text}{self._after}"


def _mask_includes_space(description: dict[str, Any], mask_token: str) -> bool:
    """Return whether white space before a mask belongs to the mask."""
    splits_at_space = '"WhitespaceSplit"' in json.dumps(description.get("pre_tokenizer"))
    return splits_at_space or any(
        added["content"] == mask_token and added["lstrip"] for added in description["added_tokens"]
    )

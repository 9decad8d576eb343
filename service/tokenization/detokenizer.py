"""Tokens as text: what each reads alone, and what a text reads with it in place of a mask.

Models mark words in two ways. WordPiece marks what continues a word ("##ing"). Byte-level BPE and
SentencePiece count the space before a word as part of its token: " Paris" starts a word, "Paris"
continues one.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokenizers import decoders, pre_tokenizers

from service.tokenization.tokenizer_file import LoadedTokenizer

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_META_SPACE = "▁"  # SentencePiece's
_BYTE_SPACE = "Ġ"  # byte-level BPE's
_TO_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
_FROM_BYTES = decoders.ByteLevel()


class TokenText(NamedTuple):
    """A token as text.

    Attributes:
        text: the token alone.
        word: what it reads after white space, or at the start of a text.
        continuation: what it adds to the word before it; None where it does not continue one.
    """

    text: str
    word: str
    continuation: str | None


class Detokenizer(dict[int, TokenText]):
    """Every token as text, made when first asked for.

    Args:
        loaded: the bundle's tokenizer.
        mask_token: the text that marks a mask.
    """

    def __init__(self, loaded: LoadedTokenizer, mask_token: str) -> None:
        super().__init__()
        description = loaded.description
        self._vocabulary = loaded.vocabulary
        self._decoder = loaded.tokenizer.decoder
        self._mark = description["model"].get("continuing_subword_prefix") or ""
        self._added = {
            token_id: token.content
            for token_id, token in loaded.tokenizer.get_added_tokens_decoder().items()
        }
        self._added_ids = {content: token_id for token_id, content in self._added.items()}
        parts = json.dumps([description.get("pre_tokenizer"), description.get("decoder")])
        self._byte_level = '"ByteLevel"' in parts
        self._meta_space = json.dumps(_META_SPACE) in parts
        self._spaces_in_tokens = (self._byte_level or self._meta_space) and (
            _takes_space(description, mask_token)
        )

    def __missing__(self, token_id: int) -> TokenText:
        text = self._text(token_id)
        continuation: str | None = None
        word = text
        if token_id in self._added:  # stands alone, whatever is around it
            pass
        elif self._spaces_in_tokens:
            word = text.removeprefix(" ")
            continuation = text if word == text else None
        elif self._mark and text.startswith(self._mark):
            continuation = text.removeprefix(self._mark)
        self[token_id] = piece = TokenText(text, word, continuation)
        return piece

    def phrase(self, text: str, token_ids: Sequence[int]) -> TokenText:
        """Several tokens as one piece that reads as it was written.

        Args:
            text: what was tokenized.
            token_ids: what it became.
        """
        if self[token_ids[0]].continuation is not None:
            return TokenText(text, text, text)
        word = text.strip()
        return TokenText(f" {word}" if self._spaces_in_tokens else word, word, None)

    def word(self, token_ids: Sequence[int]) -> TokenText:
        """A token and its continuations as one piece."""
        first, *rest = (self[token_id] for token_id in token_ids)
        end = "".join(piece.continuation or piece.text for piece in rest)
        continuation = None if first.continuation is None else first.continuation + end
        return TokenText(first.text + end, first.word + end, continuation)

    def find(self, text: str) -> int | None:
        """The id of the token that reads this, or whose name in the vocabulary this is."""
        if (token_id := self._added_ids.get(text)) is not None:
            return token_id
        if self._byte_level:
            # "é" is the character, though the vocabulary has a byte of that name; "Ġ" only names
            names = ["".join(piece for piece, _ in _TO_BYTES.pre_tokenize_str(text))]
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
        if self._byte_level:  # what is not a whole character becomes U+FFFD
            return _FROM_BYTES.decode([name])
        if self._meta_space and _META_SPACE in name:  # the decoder drops the space of a first token
            return name.replace(_META_SPACE, " ")
        return name if self._decoder is None else str(self._decoder.decode([name]))


class MaskSlot:
    """A mask in a text, to be filled with one token after another."""

    __slots__ = ("_after", "_before", "_parted", "_pieces", "_word_before")

    def __init__(self, text: str, span: tuple[int, int], pieces: Detokenizer) -> None:
        start, end = span
        self._before, self._after = text[:start], text[end:]
        self._word_before = self._before.rstrip()
        self._parted = self._word_before != self._before or not self._before
        self._pieces = pieces

    def filled(self, token_id: int) -> tuple[str, str]:
        """The token as text, and the user's text with the token in place of the mask."""
        return self.filled_with(self._pieces[token_id])

    def filled_with(self, piece: TokenText) -> tuple[str, str]:
        """The piece as text, and the user's text with the piece in place of the mask.

        A piece that continues a word keeps its mark in the first, as in "##ing", and one that
        starts a word its space, as in " Paris". In the second, whatever is outside the mask stays
        as it was written, but for the white space before a continuation: it belongs to the word
        before it.
        """
        text, word, continuation = piece
        if continuation is not None and self._word_before:
            return text, f"{self._word_before}{continuation}{self._after}"
        return text, f"{self._before}{word if self._parted else text}{self._after}"


def _takes_space(description: dict[str, Any], mask_token: str) -> bool:
    """Whether the white space before a mask is the mask's, and not a token of its own."""
    splits_at_space = '"WhitespaceSplit"' in json.dumps(description.get("pre_tokenizer"))
    return splits_at_space or any(
        added["content"] == mask_token and added["lstrip"] for added in description["added_tokens"]
    )

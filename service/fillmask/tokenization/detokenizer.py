"""Detokenization of tokens, alone and in place of a mask.

Tokenizers mark words in three ways. WordPiece marks tokens that continue a word ("##ing").
Byte-level BPE and SentencePiece include the space before a word in its first token, so " Paris"
starts a word and "Paris" continues one. HerBERT's BPE marks tokens that end a word ("kot</w>").
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokenizers import decoders, pre_tokenizers

from fillmask.tokenization.tokenizer_file import LoadedTokenizer
from fillmask.tokenization.words import is_unspaced

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# characters for a space in the names of tokens, in SentencePiece and in byte-level BPE
_META_SPACE = "▁"
_BYTE_SPACE = "Ġ"
_TO_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
_FROM_BYTES = decoders.ByteLevel()


# marks a piece of a word where the text of the piece alone means a word
PIECE_MARK = "##"


class TokenText(NamedTuple):
    """Text of one or more tokens.

    Attributes:
        text: text of the token alone.
        word: text of the token after white space or at the start of a text.
        continuation: text that the token adds to the word before it. None if the token continues no
            word.
        starts: whether the token starts a word after white space.
        ends: whether a word may end with the token. None if tokens don't tell.
    """

    text: str
    word: str
    continuation: str | None
    starts: bool = True
    ends: bool | None = None


class Detokenizer(dict[int, TokenText]):
    """Text of each token by id, computed at the first access.

    Attributes:
        spaces_in_tokens: whether a token that starts a word includes the space before it.
        mask_takes_space: whether white space before a mask belongs to the mask.
    """

    def __init__(self, loaded: LoadedTokenizer, mask_token: str) -> None:
        super().__init__()
        description = loaded.description
        self._vocabulary = loaded.vocabulary
        self._decoder = loaded.tokenizer.decoder
        self._continuation_mark = description["model"].get("continuing_subword_prefix") or ""
        self._end_mark = description["model"].get("end_of_word_suffix") or ""
        if not isinstance(self._continuation_mark, str) or not isinstance(self._end_mark, str):
            raise TypeError("continuing_subword_prefix and end_of_word_suffix must be texts")
        self._added = {
            token_id: token.content
            for token_id, token in loaded.tokenizer.get_added_tokens_decoder().items()
        }
        self._added_ids = {content: token_id for token_id, content in self._added.items()}
        parts = json.dumps([description.get("pre_tokenizer"), description.get("decoder")])
        self._byte_level = '"ByteLevel"' in parts
        self._meta_space = json.dumps(_META_SPACE) in parts
        self.spaces_in_tokens = self._byte_level or self._meta_space
        self.mask_takes_space = _mask_includes_space(description, mask_token)

    def __missing__(self, token_id: int) -> TokenText:
        text = self._text(token_id)
        token = TokenText(text, text, None)
        if token_id in self._added:  # added tokens never continue a word
            pass
        elif self.spaces_in_tokens:
            word = text.removeprefix(" ")
            starts = word != text
            token = TokenText(text, word, None if starts else text, starts)
        elif self._end_mark:
            ends = self.name(token_id).endswith(self._end_mark)
            shown = text if ends else text + PIECE_MARK
            token = TokenText(shown, text, text, ends=ends)
        elif self._continuation_mark and text.startswith(self._continuation_mark):
            end = text.removeprefix(self._continuation_mark)
            token = TokenText(text, text, end, starts=False)
        self[token_id] = token
        return token

    def phrase(self, text: str, token_ids: Sequence[int]) -> TokenText:
        """Return several tokens as one text that keeps the client's spelling.

        Args:
            text: the text as the client wrote it.
        """
        if not self[token_ids[0]].starts:
            text = text.removeprefix(PIECE_MARK)
            return TokenText(text, text, text, starts=False)
        word = text.strip()
        return TokenText(f" {word}" if self.spaces_in_tokens else word, word, None)

    def join(self, token_ids: Sequence[int]) -> TokenText:
        """Return one text for a token and the continuation tokens after it."""
        first, *rest = (self[token_id] for token_id in token_ids)
        if not rest:
            return first
        end = "".join(token.continuation or token.text for token in rest)
        text = first.word if self._end_mark else first.text
        continuation = None if first.continuation is None else first.continuation + end
        return TokenText(text + end, first.word + end, continuation, first.starts, rest[-1].ends)

    def without_space(self, token_ids: Sequence[int]) -> tuple[int, ...] | None:
        """Return the tokens of a word that follows no space. None if the vocabulary lacks them."""
        name = self.name(token_ids[0])
        mark = _BYTE_SPACE if self._byte_level else _META_SPACE
        if not name.startswith(mark):
            return tuple(token_ids)
        if name == mark:
            return tuple(token_ids[1:]) or None
        first = self._vocabulary.token_to_id(name.removeprefix(mark))
        return None if first is None else (first, *token_ids[1:])

    def is_word(self, text: str) -> bool:
        """Return whether a target means a word after a space, as its first character tells."""
        is_name = self._byte_level and text.startswith(_BYTE_SPACE)
        return self.spaces_in_tokens and text[:1].isalnum() and not is_name

    def find(self, text: str) -> int | None:
        """Return the id of the token with this text or with this name in the vocabulary."""
        if (token_id := self._added_ids.get(text)) is not None:
            return token_id
        if self._byte_level:
            # "é" means the character, although "é" is also the name of a byte in the vocabulary.
            # "Ġ" occurs only in names, where it means a space.
            names = ["".join(part for part, _ in _TO_BYTES.pre_tokenize_str(text))]
            names += [text] if text.startswith(_BYTE_SPACE) else []
        elif self._end_mark and not text.endswith(self._end_mark):
            names = [text + self._end_mark]
            if text.endswith(PIECE_MARK):
                names.append(text.removesuffix(PIECE_MARK))
        else:
            names = [text.replace(" ", _META_SPACE) if self._meta_space else text]
        ids = (self._vocabulary.token_to_id(name) for name in names)
        return next((token_id for token_id in ids if token_id is not None), None)

    @property
    def has_continuation_marks(self) -> bool:
        """Whether tokens that continue a word have a mark such as "##"."""
        return bool(self._continuation_mark)

    def name(self, token_id: int) -> str:
        """Return a token as in the vocabulary, or an empty text for an unused row."""
        return self._added.get(token_id) or self._vocabulary.id_to_token(token_id) or ""

    def join_names(self, names: Sequence[str]) -> str:
        """Return the text of several tokens by their names in the vocabulary."""
        return " ".join(names) if self._decoder is None else str(self._decoder.decode(list(names)))

    def _text(self, token_id: int) -> str:
        if token_id in self._added:
            return self._added[token_id]
        name = self._vocabulary.id_to_token(token_id)
        if name is None:
            return _REPLACEMENT
        if self._end_mark:
            name = name.removesuffix(self._end_mark)
        if self._byte_level:  # incomplete characters become U+FFFD
            return _FROM_BYTES.decode([name])
        if self._meta_space and _META_SPACE in name:  # the decoder drops a leading space
            return name.replace(_META_SPACE, " ")
        return name if self._decoder is None else str(self._decoder.decode([name]))


class MaskSlot:
    """The position of a mask in a text, for fills with one or more tokens.

    Attributes:
        is_first: True if no word precedes the mask in a text or in its part of a pair.
        unspaced: True after a character of a script without spaces between words.
        glued: True if a word in place of the mask has no space before it, as at the start of a
            text, after a quotation mark and in Chinese.
    """

    __slots__ = (
        *("_after", "_before", "_detokenizer", "_follows_space", "_word_before"),
        *("glued", "is_first", "unspaced"),
    )

    def __init__(
        self,
        text: str,
        span: tuple[int, int],
        detokenizer: Detokenizer,
        second_start: int,
        *,
        starts_with_space: bool,
    ) -> None:
        start, end = span
        self._before, self._after = text[:start], text[end:]
        word_before = self._before.rstrip()
        self.is_first = len(word_before) <= (second_start if second_start <= start else 0)
        self._word_before = "" if self.is_first else word_before
        self._follows_space = self._word_before != self._before or not self._before
        self._detokenizer = detokenizer
        last = self._before[-1:]
        self.unspaced = not self.is_first and is_unspaced(last)
        if self.is_first:
            self.glued = not starts_with_space and not last.isspace()
        else:
            self.glued = self.unspaced or not (last.isspace() or last.isalnum())

    def fill(self, token_id: int) -> tuple[str, str]:
        """Return the text of a token and the client's text with the token in place of the mask."""
        return self.fill_with(self._detokenizer[token_id])

    def fill_with(self, token: TokenText) -> tuple[str, str]:
        """Return the text of a token and the client's text with the token in place of the mask.

        The text of a token keeps its continuation mark, as in "##ing", or its space, as in
        " Paris". The client's text loses only the mask and any white space before a continuation,
        unless that space is a token of its own.
        """
        text, word, continuation, starts, ends = token
        after = self._after.lstrip() if ends is False else self._after
        joins = self._detokenizer.mask_takes_space or not self._detokenizer.spaces_in_tokens
        if continuation is not None and not starts and self._word_before and joins:
            return text, f"{self._word_before}{continuation}{after}"
        spaced = not self._follows_space and ends is None
        return text, f"{self._before}{text if spaced else word}{after}"


def _mask_includes_space(description: dict[str, Any], mask_token: str) -> bool:
    """Return whether white space before a mask belongs to the mask."""
    splits_at_space = '"WhitespaceSplit"' in json.dumps(description.get("pre_tokenizer"))
    return splits_at_space or any(
        added["content"] == mask_token and added["lstrip"] for added in description["added_tokens"]
    )

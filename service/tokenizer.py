"""Text to ids and back: where the masks are, and what the text reads with a mask filled."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_

import numpy as np
from tokenizers import Encoding
from tokenizers import Tokenizer as TokenizersTokenizer

from service.batch import IntArray
from service.bundle import Bundle
from service.errors import BundleError, InvalidRequestError, quote

# A text is encoded on the thread that asks; tokenizers' own pool would take CPUs from the batches.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# Encoding this many characters takes 0.2 ms in English and 0.7 ms in Chinese; going to another
# thread and back takes 0.03 ms. `encode` keeps the interpreter lock; `encode_batch` releases it.
LONG_TEXT_CHARS = 1_000


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
            description = json.loads(tokenizer_json)
            added_tokens = description["added_tokens"]
            _make_mask_ordinary(added_tokens, mask_token, mask_token_id)
            self._tokenizer = TokenizersTokenizer.from_str(json.dumps(description))
            model = description["model"]
        except Exception as error:  # tokenizers raises bare Exception
            raise BundleError(
                "The bundle is refused: tokenizer.json cannot be read as a tokenizer."
            ) from error
        if self._tokenizer.token_to_id(mask_token) != mask_token_id:
            raise BundleError(
                f"The bundle is refused: in tokenizer.json {quote(mask_token)} does not have the "
                f"id {mask_token_id} that bundle.json gives it."
            )
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # "[SEP]" in a text is six characters; only the mask, made ordinary above, is one token
        self._tokenizer.encode_special_tokens = True
        self.mask_token = mask_token
        self.mask_token_id = mask_token_id
        self.special_token_ids = frozenset(special_token_ids)
        unknown_token = model.get("unk_token")
        self._unknown_token_id = (
            None if unknown_token is None else self._tokenizer.token_to_id(unknown_token)
        )
        self._forbidden_ids = self.special_token_ids - {mask_token_id, self._unknown_token_id}
        self._pieces = _Pieces(self._tokenizer, model.get("continuing_subword_prefix") or "")

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
        encoding = self._encode(text, special_tokens=True)
        ids, framing = encoding.ids, encoding.special_tokens_mask
        self._refuse_special_tokens(compress(ids, map(not_, framing)))
        positions = [p for p in _positions(ids, self.mask_token_id) if not framing[p]]
        offsets = encoding.offsets
        return EncodedText(
            input_ids=np.array(ids, dtype=np.int64),
            mask_positions=np.array(positions, dtype=np.int64),
            mask_spans=tuple(_trim(text, *offsets[p]) for p in positions),
        )

    def target_id(self, target: str) -> int:
        """The id of a target, which must be one ordinary token.

        Raises:
            InvalidRequestError: it is none, several, unknown or special; the text shows how it
                splits.
        """
        token_id = self._tokenizer.token_to_id(target)
        ids = [token_id] if token_id is not None else self._encode(target, special_tokens=False).ids
        if len(ids) == 1 and ids[0] not in self.special_token_ids | {self._unknown_token_id}:
            return int(ids[0])
        if len(ids) == 1:
            raise InvalidRequestError(
                f"The target {quote(target)} is not in the model's vocabulary, and each target "
                "must be one ordinary token of it."
            )
        tokens = " ".join(self._tokenizer.id_to_token(i) or "" for i in ids[:20])
        raise InvalidRequestError(
            f"The target {quote(target)} splits into {len(ids)} tokens ({tokens[:80]}), and each "
            "target must be one token."
        )

    def token_str(self, token_id: int) -> str:
        """The token as text; a piece that continues a word keeps its mark, as in "##ing"."""
        return self._pieces[token_id][0]

    def blank(self, text: str, span: tuple[int, int]) -> "Blank":
        """The mask at this span, to be filled."""
        return Blank(text, span, self._pieces)

    def _encode(self, text: str, *, special_tokens: bool) -> Encoding:
        if len(text) < LONG_TEXT_CHARS:
            return self._tokenizer.encode(text, add_special_tokens=special_tokens)
        return self._tokenizer.encode_batch([text], add_special_tokens=special_tokens)[0]

    def _refuse_special_tokens(self, ids: Iterable[int]) -> None:
        for token_id in self._forbidden_ids.intersection(ids):
            token = self._tokenizer.id_to_token(token_id) or str(token_id)
            raise InvalidRequestError(
                f"{quote(token)} is a special token of the model and cannot be part of a text; "
                f"only the mask token {self.mask_token} can."
            )


class Blank:
    """A mask in a text, to be filled with one token after another."""

    __slots__ = ("_after", "_before", "_pieces", "_word_before")

    def __init__(self, text: str, span: tuple[int, int], pieces: "_Pieces") -> None:
        start, end = span
        self._before, self._after = text[:start], text[end:]
        self._word_before = self._before.rstrip()
        self._pieces = pieces

    def filled(self, token_id: int) -> tuple[str, str]:
        """The token as text, and the user's text with the token in place of the mask.

        A piece that continues a word keeps its mark in the first, as in "##ing". In the second,
        whatever is outside the mask stays as it was written, but for the white space before such a
        piece: it belongs to the word before it.
        """
        token_str, continuation = self._pieces[token_id]
        if continuation is not None and self._word_before:
            return token_str, f"{self._word_before}{continuation}{self._after}"
        return token_str, f"{self._before}{token_str}{self._after}"


class _Pieces(dict[int, tuple[str, str | None]]):
    """Tokens as text, decoded when first asked for; what continues a word also without its mark."""

    def __init__(self, tokenizer: TokenizersTokenizer, mark: str) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._mark = mark

    def __missing__(self, token_id: int) -> tuple[str, str | None]:
        token_str = self._tokenizer.decode([token_id], skip_special_tokens=False)
        continues = bool(self._mark) and token_str.startswith(self._mark)
        piece = (token_str, token_str.removeprefix(self._mark) if continues else None)
        self[token_id] = piece
        return piece


def _positions(ids: list[int], token_id: int) -> Iterator[int]:
    """Where the token is, ascending; by list.index, ten times as fast as looking at each."""
    position = -1
    for _ in range(ids.count(token_id)):
        position = ids.index(token_id, position + 1)
        yield position


def _make_mask_ordinary(
    added_tokens: list[dict[str, object]], mask_token: str, mask_token_id: int
) -> None:
    """Have the mask matched in text as one token, and not switched off with the special ones."""
    for added in added_tokens:
        if added["content"] == mask_token:
            added["special"] = False
            return
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    added_tokens.append({"id": mask_token_id, "content": mask_token, **flags})


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space that some tokenizers count as part of the mask."""
    span = text[start:end]
    return start + len(span) - len(span.lstrip()), end - (len(span) - len(span.rstrip()))

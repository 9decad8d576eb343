"""SentencePiece's Unigram segmentation, in the memory that its pieces take.

Kudo 2018, "Subword Regularization", section 3.2: of all ways to cut a text into pieces, the one
whose pieces have the highest sum of log-probabilities, found by the Viterbi algorithm.

tokenizers keeps the pieces in a tree with a hash table in each node: 343 MB for XLM-RoBERTa's
250,002. One dictionary of them takes 45 MB; the cuts and their order in ties are the same. 126
tokens take 0.15 ms, with the library 0.12.
"""

from array import array
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any

from tokenizers import PreTokenizedString, Token

from service.tokenization.byte_cache import ByteCache

_UNKNOWN_PENALTY = 10.0  # what an unknown character scores below the worst piece; SentencePiece's
# longer stretches are seldom seen twice
_CACHED_CHARS = 32
CACHED_WORDS_BYTES = 2**22
# of a word and its list, and of each of its tokens with its text and offsets
_WORD_BYTES, _TOKEN_BYTES = 350, 120


class Unigram:
    """A Unigram model, to be the last pre-tokenizer of a tokenizer: it leaves no text to split.

    Args:
        model: the "model" of a tokenizer.json. Its list of pieces is emptied: there is no room in
            memory for both.
        never: ids that no text may be cut into, the special tokens'.

    Raises:
        ValueError: the model has no id for unknown characters.
    """

    def __init__(self, model: dict[str, Any], never: Iterable[int]) -> None:
        vocabulary = model["vocab"]
        unknown_id = model["unk_id"]
        if unknown_id is None or not 0 <= unknown_id < len(vocabulary):
            raise ValueError("a Unigram model needs the id of its unknown token")
        self._unknown_id = unknown_id
        self._scores = array("d", (score for _, score in vocabulary))
        self._unknown_score = min(self._scores) - _UNKNOWN_PENALTY
        joined = "".join(piece for piece, _ in vocabulary)
        ends = array("q", accumulate(len(piece) for piece, _ in vocabulary))
        vocabulary.clear()
        # cut anew, the strings lie side by side and what was parsed gives its memory back
        self._names = [joined[start:end] for start, end in pairwise((0, *ends))]
        hidden = frozenset(never)
        self._ids = {name: i for i, name in enumerate(self._names) if i not in hidden}
        self._longest: dict[str, int] = {}  # of the pieces that begin with this character
        for name in self._ids:
            self._longest[name[:1]] = max(self._longest.get(name[:1], 0), len(name))
        self._byte_fallback = bool(model.get("byte_fallback"))
        self._cached: ByteCache[str, list[Token]] = ByteCache(CACHED_WORDS_BYTES)

    def pre_tokenize(self, text: PreTokenizedString) -> None:
        """Cut each stretch of text that has no tokens yet; called by tokenizers."""
        text.tokenize(self._tokenize)

    def token_to_id(self, name: str) -> int | None:
        """The id of a piece, None if there is no such piece or no text may be cut into it."""
        return self._ids.get(name)

    def id_to_token(self, token_id: int) -> str | None:
        """The piece with this id."""
        return self._names[token_id] if 0 <= token_id < len(self._names) else None

    def _tokenize(self, word: str) -> list[Token]:
        if len(word) > _CACHED_CHARS:
            return self._tokens(word)
        tokens = self._cached.get(word)
        if tokens is None:
            tokens = self._tokens(word)
            self._cached.put(word, tokens, _WORD_BYTES + _TOKEN_BYTES * len(tokens))
        return tokens

    def _tokens(self, word: str) -> list[Token]:
        """The pieces with their ids and offsets, which tokenizers counts in bytes of UTF-8."""
        tokens = []
        start = 0
        for piece in self._pieces(word):
            encoded = piece.encode()
            end = start + len(encoded)
            tokens += [
                Token(token_id, piece, (start, end)) for token_id in self._of(piece, encoded)
            ]
            start = end
        return tokens

    def _pieces(self, word: str) -> list[str]:
        """The best cut; neighbouring unknown characters are one piece."""
        ids, scores, longest = self._ids, self._scores, self._longest
        length = len(word)
        best = [0.0] * (length + 1)  # score of the best cut of the text before each character
        starts = [-1] * (length + 1)  # where the last piece of that cut starts
        known = [False] * (length + 1)
        for start in range(length):
            until_here = best[start]
            alone = False  # whether this character is a piece
            for end in range(start + 1, min(start + longest.get(word[start], 0), length) + 1):
                token_id = ids.get(word[start:end])
                if token_id is None:
                    continue
                score = scores[token_id] + until_here
                if starts[end] < 0 or score > best[end]:
                    best[end], starts[end], known[end] = score, start, token_id != self._unknown_id
                alone = alone or end == start + 1
            end = start + 1
            score = self._unknown_score + until_here
            if not alone and (starts[end] < 0 or score > best[end]):
                best[end], starts[end], known[end] = score, start, False
        pieces: list[str] = []
        end = length
        last_known = True
        while end > 0:
            piece = word[starts[end] : end]
            if known[end] or last_known:
                pieces.append(piece)
            else:
                pieces[-1] = piece + pieces[-1]
            last_known, end = known[end], starts[end]
        pieces.reverse()
        return pieces

    def _of(self, piece: str, encoded: bytes) -> list[int]:
        """A piece's id; of unknown characters their bytes', where each byte has a piece."""
        if (token_id := self._ids.get(piece)) is not None:
            return [token_id]
        if self._byte_fallback:
            of_bytes = [self._ids.get(f"<0x{byte:02X}>") for byte in encoded]
            known = [byte_id for byte_id in of_bytes if byte_id is not None]
            if len(known) == len(encoded):
                return known
        return [self._unknown_id]

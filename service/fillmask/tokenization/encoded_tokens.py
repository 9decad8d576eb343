"""Texts and pairs of texts as tokens, each of which has a name and a place of its own.

Shapes: T tokens of a text or a pair, t tokens that are not special.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding

from fillmask.arrays import IntArray, int_array
from fillmask.parameters.texts import InputText
from fillmask.tokenization.detokenizer import Detokenizer


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTokens:
    """Tokens of a text or a pair.

    Attributes:
        input_ids: (T,) int64, including special tokens.
        positions: (t,) int64, ascending positions of the t ordinary tokens in input_ids.
        names: name of each ordinary token in the vocabulary, or its text if it is unknown.
        spans: start and end of each ordinary token in the text, in characters, as the tokenizer
            says them.
        continues: whether each ordinary token belongs to the word before it.
        parts: (t,) int64, part of the pair that contains each ordinary token, 0 or 1.
        token_types: (T,) int64 token types. None if all tokens have type 0.
    """

    input_ids: IntArray
    positions: IntArray
    names: Sequence[str]
    spans: Sequence[tuple[int, int]]
    continues: Sequence[bool]
    parts: IntArray
    token_types: IntArray | None = None

    @classmethod
    def of(
        cls,
        text: InputText,
        encoding: Encoding,
        detokenizer: Detokenizer,
        unknown_id: int | None,
        token_types: IntArray | None,
    ) -> "EncodedTokens":
        """Find the names, places and words of the tokens in an encoding of a text.

        A token continues a word as in the token-classification pipeline of transformers: if its
        name has a mark, and in vocabularies without such marks if no space is before it.
        """
        ids, sequence_ids, offsets = encoding.ids, encoding.sequence_ids, encoding.offsets
        joined = str(text)
        starts = (0, 0 if isinstance(text, str) else text.second_start)
        positions = [p for p, special in enumerate(encoding.special_tokens_mask) if not special]
        parts = [sequence_ids[p] or 0 for p in positions]
        names, spans, continues = [], [], []
        for position, part in zip(positions, parts, strict=True):
            start, end = (starts[part] + offset for offset in offsets[position])
            name, shown = detokenizer.name(ids[position]), joined[start:end]
            if ids[position] == unknown_id:
                name, follows = shown, False
            elif detokenizer.has_continuation_marks:
                follows = len(name) != len(shown)
            else:
                follows = start > 0 and " " not in joined[start - 1 : start + 1]
            names.append(name)
            spans.append((start, end))
            continues.append(follows)
        arrays = int_array(ids), int_array(positions)
        return cls(*arrays, names, spans, continues, int_array(parts), token_types)

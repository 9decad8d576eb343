"""Training of WordPiece tokenizers."""

from __future__ import annotations

from tokenizers import Tokenizer

from fillmask_model.tokenizers.word_pieces import SPECIAL_TOKENS, train_word_pieces
from tests.model.samples import VERSES


def test_the_vocabulary_is_bounded_and_begins_with_the_special_tokens() -> None:
    # [PAD] has id 0, and the other special tokens follow.
    small = train_word_pieces(VERSES, vocab_size=50)
    assert small.get_vocab_size() <= 50
    assert [small.id_to_token(i) for i in range(5)] == list(SPECIAL_TOKENS)
    pieces = small.encode("mat tree", add_special_tokens=False).tokens
    assert len(pieces) > 2
    assert all(piece.startswith("##") for piece in pieces if piece not in {"m", "t"})


def test_text_is_framed_as_bert_frames_it(tokenizer: Tokenizer) -> None:
    # The second text of a pair has type 1.
    pair = tokenizer.encode("the [MASK]", "sun")
    assert pair.tokens == ["[CLS]", "the", "[MASK]", "[SEP]", "sun", "[SEP]"]
    assert pair.type_ids == [0, 0, 0, 0, 1, 1]


def test_case_and_accents_fold() -> None:
    tokenizer = train_word_pieces(["cafe cafe"], vocab_size=40)
    spelt = "CAF\N{LATIN CAPITAL LETTER E WITH ACUTE}"
    assert tokenizer.encode(spelt, add_special_tokens=False).tokens == ["cafe"]

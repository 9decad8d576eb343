"""Where words begin and end."""

from __future__ import annotations

import pytest

from fillmask.tokenization.words import MAX_WORD_TOKENS, word_indices


def divided(text: str, pieces: list[str], *, one_word: bool) -> list[str]:
    """Return the words of a text, made of consecutive pieces without the white space around."""
    spans, start = [], 0
    for piece in pieces:
        start = text.index(piece, start)
        spans.append((start, start + len(piece)))
        start += len(piece)
    words = word_indices(text, spans, [0 if one_word else index for index in range(len(pieces))])
    ends = {word: span[1] for word, span in zip(words.tolist(), spans, strict=True)}
    starts = {w: s[0] for w, s in reversed(list(zip(words.tolist(), spans, strict=True)))}
    return [text[starts[word] : ends[word]] for word in sorted(ends)]


@pytest.mark.parametrize(
    ("text", "pieces", "words"),
    [
        ("the walking dogs.", ["the", "walk", "ing", "dogs", "."], ["the", "walking", "dogs."]),
        ("北京是中国", ["北京", "是", "中国"], ["北京", "是", "中国"]),
        ("I like 苹果 pie", ["I", "like", "苹", "果", "pie"], ["I", "like", "苹", "果", "pie"]),
        ("a b", ["a", " ", "b"], ["a", " b"]),
        ("python语言", ["pyth", "on", "语言"], ["python", "语言"]),
        ("ข้าวสุก", ["ข้", "าว", "สุก"], ["ข้", "าว", "สุก"]),
        ("हिन्दी भाषा", ["हिन", "्दी", "भाषा"], ["हिन्दी", "भाषा"]),
        ("ACGT" * 20, ["ACGT"] * 20, ["ACGT"] * 20),
        ("ACGT" * MAX_WORD_TOKENS, ["ACGT"] * MAX_WORD_TOKENS, ["ACGT" * MAX_WORD_TOKENS]),
    ],
)
def test_words_of_a_text_in_one_piece(text: str, pieces: list[str], words: list[str]) -> None:
    # Gemma's form of tokenizer has one word per text, and SentencePiece one per Chinese sentence.
    assert divided(text, pieces, one_word=True) == words
    assert divided(text, pieces, one_word=False) == pieces


def test_bytes_of_a_character_are_one_word() -> None:
    spans = [(0, 1), (0, 1), (0, 1), (1, 2)]
    assert word_indices("京都", spans, [0, 0, 0, 0]).tolist() == [0, 0, 0, 1]

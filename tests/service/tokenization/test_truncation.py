"""Truncated texts of any length, which have the tokens of the tokenizers library."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as LibraryTokenizer

from fillmask.bundles.description import TruncationSide
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair, Truncation
from fillmask.tokenization import truncation
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer

CUT = Truncation(truncate=True)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = ["the old town has rain and stone", "QUJDREVG", "12 345", "café naïve", "日本語", "!?"]
SENTENCE_PIECES = pre_tokenizers.Sequence(
    [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
)
WORDS = {word: 5 + i for i, word in enumerate(" ".join(TEXT).split())}
KINDS: dict[str, tuple[Any, Any, Any, Any]] = {
    "WordPiece": (
        models.WordPiece(unk_token=SPECIAL[1]),
        trainers.WordPieceTrainer(vocab_size=80, special_tokens=SPECIAL),
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    ),
    "byte-level BPE": (
        models.BPE(),
        trainers.BpeTrainer(
            vocab_size=330,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
        normalizers.NFC(),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ),
    "Unigram": (
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=60, special_tokens=SPECIAL, unk_token=SPECIAL[1]),
        normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
        SENTENCE_PIECES,
    ),
    "word-level": (
        models.WordLevel(dict(zip(SPECIAL, range(5), strict=True)) | WORDS, unk_token=SPECIAL[1]),
        None,
        normalizers.NFKD(),
        pre_tokenizers.WhitespaceSplit(),
    ),
}


def library(kind: str) -> LibraryTokenizer:
    """Return a tokenizer that was trained on TEXT."""
    model, trainer, normalizer, pre_tokenizer = KINDS[kind]
    made = LibraryTokenizer(model)
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    if trainer is None:
        made.add_special_tokens(SPECIAL)
    else:
        made.train_from_iterator(TEXT, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return made


LIBRARY = {kind: library(kind) for kind in KINDS}
TOKENIZERS = {
    (kind, side): Tokenizer(
        made.to_str().encode(), "[MASK]", 4, range(5), pairs=True, truncation_side=side
    )
    for kind, made in LIBRARY.items()
    for side in ("left", "right")
}
# words, unknown words, and characters that normalizers delete, shrink or extend
UNITS = [
    " ",
    "\n",
    "QUJD",
    "\x01",
    "\u00ad",
    "e\u0301",
    "ﬁ",
    "the old town ",
    "rain",
    "345",
    "日",
    "!",
]
RUNS = st.tuples(st.sampled_from(UNITS), st.sampled_from([1, 2, 30, 100])).map(
    lambda drawn: drawn[0] * drawn[1]
)
TEXTS = st.lists(RUNS, min_size=1, max_size=6).map("".join)


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let texts be shortened that are much shorter than those of a service."""
    monkeypatch.setattr(truncation, "_STEP_CHARS", 64)
    monkeypatch.setattr(truncation, "_SPARE_TOKENS", 120)


def check(kind: str, side: TruncationSide, text: InputText, max_tokens: int) -> None:
    """Compare a text with what transformers returns for truncation=True, by the same library."""
    made = LibraryTokenizer.from_str(LIBRARY[kind].to_str())
    parts = (text,) if isinstance(text, str) else (text.text, text.text_pair)
    made.enable_truncation(max_tokens, strategy="longest_first", direction=side)
    expected = made.encode(*parts).ids
    try:
        tokenizer = TOKENIZERS[kind, side]
        encoded = TextReader(tokenizer, max_tokens).read_plain(text, "inputs", CUT)
        found = encoded.input_ids.tolist()
    except InvalidRequestError as error:
        found = [2, 3] if "has no tokens" in error.text else []
    assert found == (expected if set(expected) - {2, 3} else [2, 3])


@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize(("kind", "side"), TOKENIZERS)
def test_truncated_texts_are_those_of_the_library(kind: str, side: TruncationSide) -> None:
    @given(TEXTS | st.builds(TextPair, TEXTS, TEXTS), st.sampled_from([8, 31, 64]))
    def compare(text: InputText, max_tokens: int) -> None:
        if isinstance(text, TextPair):
            # which of two parts is longer is an estimate if both exceed the limit
            tokens = [len(LIBRARY[kind].encode(part)) for part in (text.text, text.text_pair)]
            assume(
                min(tokens) <= max_tokens // 2 or max(map(len, (text.text, text.text_pair))) <= 64
            )
        check(kind, side, text, max_tokens)

    compare()


# with a quarter of the service's numbers, which takes a quarter of the time
LONG = {
    "white space": "the old town" + " " * 25_000 + "rain and stone",
    "an unknown word": "the old town " + "QUJD" * 1_250 + " rain and stone",
    "removed characters": "the old town " + "\x01\u00ad" * 12_500 + " rain and stone",
    "accents": "cafe\u0301 " * 1_000 + "rain",
    "blanks, then words": " " * 25_000 + "the old town " * 500,
    "a longer first text": TextPair("the old town " * 625, "rain " * 1_000),
    "a longer second text": TextPair("the old town " * 375, "rain " * 1_500),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize(("kind", "side"), [("WordPiece", "right"), ("Unigram", "left")])
def test_long_texts(
    kind: str, side: TruncationSide, text: InputText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truncation, "_STEP_CHARS", 2**12)
    monkeypatch.setattr(truncation, "_SPARE_TOKENS", 250)
    check(kind, side, text, 250)


def test_most_of_a_long_text_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    # A token takes 500 bytes of memory while the library encodes.
    encoded = []
    encode = Tokenizer.encode

    def spy(self: Tokenizer, text: InputText) -> EncodedText:
        encoded.append(len(text))
        return encode(self, text)

    monkeypatch.setattr(Tokenizer, "encode", spy)
    check("WordPiece", "right", "the old town! " * 10_000, 1_000)
    assert sum(encoded) <= 4 * truncation._STEP_CHARS

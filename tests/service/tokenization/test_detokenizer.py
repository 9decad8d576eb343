"""Tokenizers whose tokens include the space before a word: byte-level BPE and SentencePiece."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizers import Tokenizer as TokenizersTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors

from fillmask.tokenization.tokenizer import Tokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# the vocabulary has the names "Ã©" and "æĹ¥" for the bytes of "é" and "日"
BYTE_LEVEL = [
    *SPECIAL,
    *("Paris", "ĠParis", "Ġ", "ing", "Ã", "©", "Ã©", "ĠÃ©", "æ", "Ċ", "ĠĠ", ".", "i", "s", "Ġis"),
]
UNIGRAM = [
    *SPECIAL[:4],
    *("▁", "Paris", "▁Paris", "▁is", ".", "▁▁", "<", "/", "s", ">", "p", "a", "d", "é", "is"),
    *("u", "n", "k"),
    "<mask>",
]


def added(tokens: list[str], vocabulary: list[str], *, lstrip: bool) -> list[dict[str, Any]]:
    """Make the added_tokens of a tokenizer.json."""
    flags = dict.fromkeys(("single_word", "rstrip", "normalized"), False)
    return [
        {
            "id": vocabulary.index(token),
            "content": token,
            "special": True,
            "lstrip": lstrip and token == "<mask>",  # noqa: S105 - a token of another kind
            **flags,
        }
        for token in tokens
    ]


def finish(tokenizer: TokenizersTokenizer, vocabulary: list[str], *, lstrip: bool) -> Tokenizer:
    """Add special tokens and load the tokenizer as the service does."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["<s>", "$A", "</s>"], special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = added(SPECIAL, vocabulary, lstrip=lstrip)
    ids = [vocabulary.index(token) for token in SPECIAL]
    return Tokenizer(json.dumps(description).encode(), "<mask>", ids[-1], ids)


def byte_level(*, lstrip: bool = True) -> Tokenizer:
    """Make a tokenizer like RoBERTa's."""
    vocabulary = {token: i for i, token in enumerate(BYTE_LEVEL)}
    tokenizer = TokenizersTokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return finish(tokenizer, BYTE_LEVEL, lstrip=lstrip)


def unigram() -> Tokenizer:
    """Make a tokenizer like XLM-RoBERTa's, in which special pieces have the highest scores."""
    scores = [0.0 if token in SPECIAL else -5.0 for token in UNIGRAM]
    model = models.Unigram(list(zip(UNIGRAM, scores, strict=True)), unk_id=3, byte_fallback=False)
    tokenizer = TokenizersTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    return finish(tokenizer, UNIGRAM, lstrip=False)


TOKENIZERS = {"byte level": (byte_level(), BYTE_LEVEL), "unigram": (unigram(), UNIGRAM)}
NAMES = {"byte level": {" Paris": "ĠParis"}, "unigram": {" Paris": "▁Paris"}}


def fill(tokenizer: Tokenizer, text: str, token_id: int) -> str:
    """Fill the first mask of a text."""
    return tokenizer.mask_slot(text, tokenizer.encode(text)).fill(token_id)[1]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize(
    ("text", "token", "sequence"),
    [
        ("The capital is <mask>.", " Paris", "The capital is Paris."),
        ("The capital is <mask>.", "Paris", "The capital isParis."),
        ("The capital is  <mask>  .", " Paris", "The capital is  Paris  ."),
        ("The capital is \n<mask>", " Paris", "The capital is \nParis"),
        ("The capital is \n<mask>", "Paris", "The capital isParis"),
        ("Grand<mask>!", " Paris", "Grand Paris!"),
        ("Grand<mask>!", "Paris", "GrandParis!"),
        ("<mask> is", " Paris", "Paris is"),
        ("<mask> is", "Paris", "Paris is"),
        ("  <mask> is", " Paris", "  Paris is"),
        ("  <mask> is", "Paris", "  Paris is"),
        ("<mask><mask>", " Paris", "Paris<mask>"),
        ("日本 <mask>é", ".", "日本.é"),
    ],
)
def test_sequence(kind: str, text: str, token: str, sequence: str) -> None:
    # A token without a space continues the word before it.
    tokenizer, vocabulary = TOKENIZERS[kind]
    token_id = vocabulary.index(NAMES[kind].get(token, token))
    assert fill(tokenizer, text, token_id) == sequence


def test_a_mask_that_does_not_include_the_space_before_it() -> None:
    # If the mask excludes the space before it, the space is a token that neither fill repeats.
    tokenizer = byte_level(lstrip=False)
    for name in ("Paris", "ĠParis"):
        assert fill(tokenizer, "a <mask>.", BYTE_LEVEL.index(name)) == "a Paris."
    assert fill(tokenizer, "a<mask>.", BYTE_LEVEL.index("ĠParis")) == "a Paris."


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_names_are_those_of_the_vocabulary(kind: str) -> None:
    tokenizer, vocabulary = TOKENIZERS[kind]
    names = [tokenizer.vocabulary_token(token) for token in range(len(vocabulary) + 1)]
    assert names == [*vocabulary, f"[{len(vocabulary)}]"]


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        *[("byte level", "ĠParis", " Paris"), ("byte level", "Ġ", " "), ("byte level", "Ċ", "\n")],
        *[("byte level", "Ã©", "é"), ("byte level", "ĠÃ©", " é"), ("byte level", "Ã", "\ufffd")],
        *[("unigram", "▁Paris", " Paris"), ("unigram", "▁▁", "  "), ("unigram", ".", ".")],
    ],
)
def test_tokens_as_text(kind: str, name: str, text: str) -> None:
    # An incomplete character becomes U+FFFD. The mark at the start of a word becomes a space.
    tokenizer, vocabulary = TOKENIZERS[kind]
    assert tokenizer.token_str(vocabulary.index(name)) == text


def test_an_id_without_a_token_has_text() -> None:
    assert byte_level().token_str(999) == "\ufffd"


@pytest.mark.parametrize(
    ("kind", "target", "names", "shown", "sequence"),
    [
        ("byte level", "is", ["Ġis"], " is", "a is b"),
        ("byte level", "##si", ["s", "i"], "si", "asi b"),
        ("byte level", " is", ["Ġis"], " is", "a is b"),
        ("byte level", " si", ["Ġ", "s", "i"], " si", "a si b"),
        ("unigram", "pad", ["▁", "p", "a", "d"], " pad", "a pad b"),
        ("unigram", "Paris.", ["▁Paris", "."], " Paris.", "a Paris. b"),
    ],
)
def test_targets_of_several_tokens(
    kind: str, target: str, names: list[str], shown: str, sequence: str
) -> None:
    # A target that starts a word has a space before it.
    tokenizer, vocabulary = TOKENIZERS[kind]
    ids = tokenizer.encode_target(target)
    assert [vocabulary[i] for i in ids] == names
    text = "a <mask> b"
    slot = tokenizer.mask_slot(text, tokenizer.encode(text))
    assert slot.fill_with(tokenizer.target_text(target, ids)) == (shown, sequence)


@pytest.mark.parametrize(
    ("kind", "text", "name", "sequence"),
    [
        ("byte level", "<mask> is", "Paris", "Paris is"),
        ("byte level", "is <mask>", "ĠParis", "is Paris"),
        ("byte level", "is<mask>", "ĠParis", "is Paris"),
        ("byte level", "“<mask>”", "Paris", "“Paris”"),
        ("byte level", "日本<mask>", "Paris", "日本Paris"),
        ("unigram", "<mask> is", "▁Paris", "Paris is"),
        ("unigram", "“<mask>”", "Paris", "“Paris”"),
        ("unigram", "日本<mask>", "Paris", "日本Paris"),
    ],
)
def test_a_target_has_a_space_where_the_text_has(
    kind: str, text: str, name: str, sequence: str
) -> None:
    # At the start of a text, after a quotation mark and in Japanese, no space precedes a word.
    tokenizer, vocabulary = TOKENIZERS[kind]
    encoded = tokenizer.encode(text)
    [glued] = tokenizer.glued_masks(text, encoded)
    ids = tokenizer.encode_target("Paris", glued=glued)
    assert [vocabulary[i] for i in ids] == [name]
    slot = tokenizer.mask_slot(text, encoded)
    assert slot.fill_with(tokenizer.target_text("Paris", ids))[1] == sequence


def test_words_that_end_with_a_mark() -> None:
    # In HerBERT's form "kot" is the word, and "kot##" the piece that another follows.
    vocabulary = [*SPECIAL, "k", "o", "t", "t</w>", "kot", "kot</w>", "ek</w>"]
    ids = {token: i for i, token in enumerate(vocabulary)}
    model = models.BPE(ids, [], unk_token="<unk>", end_of_word_suffix="</w>")  # noqa: S106 - a token
    tokenizer = TokenizersTokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    ours = finish(tokenizer, vocabulary, lstrip=False)
    assert [ours.token_str(ids[name]) for name in ("kot</w>", "kot")] == ["kot", "kot##"]
    assert [ours.encode_target(one) for one in ("kot", "kot##")] == [(10,), (9,)]
    assert fill(ours, "t <mask> t", ids["kot</w>"]) == "t kot t"
    assert fill(ours, "t <mask> t", ids["kot"]) == "t kott"
    word = ours.detokenizer.join([ids["kot"], ids["ek</w>"]])
    assert (word.text, word.ends) == ("kotek", True)


def test_texts_contain_no_special_tokens() -> None:
    # SentencePiece on its own would find the piece "</s>" within a word.
    inside = TOKENIZERS["unigram"][0].encode("a</s>").input_ids.tolist()[1:-1]
    assert [UNIGRAM[i] for i in inside] == ["▁", "a", "<", "/", "s", ">"]

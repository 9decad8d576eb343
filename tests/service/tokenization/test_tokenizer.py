"""Tokenizer: masks, special tokens in texts, targets and sequences."""

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer as TokenizersTokenizer
from tokenizers import models, pre_tokenizers

from fillmask.errors import BundleError, InvalidRequestError
from fillmask.parameters.texts import TextPair
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer
from tests.service.tiny import MASK_ID, SPECIAL, VOCABULARY, build_tokenizer


def make(description: dict[str, Any] | None = None, mask_token_id: int = MASK_ID) -> Tokenizer:
    """Load the tiny tokenizer, or the tokenizer of a description."""
    content = json.dumps(description) if description else build_tokenizer().to_str()
    return Tokenizer(content.encode(), "[MASK]", mask_token_id, range(len(SPECIAL)))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return make()


def tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the tokens of a text, including special tokens."""
    return [VOCABULARY[i] for i in tokenizer.encode(text).input_ids]


def test_a_special_token_in_a_text_is_ordinary_text(tokenizer: Tokenizer) -> None:
    # A [SEP] in a text becomes brackets and letters. A mask in lower case is ordinary text too.
    assert tokens(tokenizer, "the [SEP]") == ["[CLS]", "the", "[", "sep", "]", "[SEP]"]
    assert tokens(tokenizer, "[CLS] [mask]")[1:-1] == ["[", "cls", "]", "[", "mask", "]"]


def test_a_special_token_that_the_vocabulary_matches_is_rejected() -> None:
    description = json.loads(build_tokenizer().to_str())
    description["normalizer"] = None
    description["pre_tokenizer"] = json.loads(
        pre_tokenizers.WhitespaceSplit().__getstate__().decode()
    )
    with pytest.raises(InvalidRequestError, match=r'"\[SEP\]" is a special token of the model'):
        make(description).encode("the [SEP] [MASK]")
    with pytest.raises(InvalidRequestError, match=r'"\[SEP\]" is a special token of the model'):
        make(description).encode(TextPair("the [MASK]", "a [SEP]"))


@pytest.mark.parametrize("change", ["absent", "not special"])
def test_the_mask_is_one_token_even_if_the_file_does_not_mark_it(change: str) -> None:
    description = json.loads(build_tokenizer().to_str())
    for added in list(description["added_tokens"]):
        if added["content"] == "[MASK]" and change == "absent":
            description["added_tokens"].remove(added)
        elif added["content"] == "[MASK]":
            added["special"] = False
    assert make(description).encode("the [MASK].").mask_positions.tolist() == [2]


def test_the_span_of_a_mask_excludes_white_space() -> None:
    # The tokenizer may match a mask together with white space.
    description = json.loads(build_tokenizer().to_str())
    for added in description["added_tokens"]:
        added["lstrip"] = added["rstrip"] = True
    assert make(description).encode("the  [MASK] of").mask_spans == ((5, 11),)


def test_a_mask_with_another_id_is_rejected() -> None:
    # The mask must have the same id in bundle.json as in tokenizer.json.
    with pytest.raises(BundleError, match=r'"\[MASK\]" has the id 4 in tokenizer.json but 3 in'):
        make(mask_token_id=3)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"added_tokens": []}', b"\xff"])
def test_a_damaged_file_is_rejected(content: bytes) -> None:
    with pytest.raises(BundleError, match=r"tokenizer.json is not a valid tokenizer"):
        Tokenizer(content, "[MASK]", MASK_ID, [MASK_ID])


def word_level(**model: Any) -> dict[str, Any]:
    """Return the tokenizer.json of whole words, with other fields of its model."""
    vocabulary = {name: token_id for token_id, name in enumerate([*SPECIAL, "the", "dog"])}
    fields = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"} | model
    whitespace = {"type": "WhitespaceSplit"}
    description: dict[str, Any] = json.loads(build_tokenizer().to_str())
    return description | {"model": fields, "pre_tokenizer": whitespace}


def test_words_that_the_vocabulary_lacks_are_rejected_without_an_unknown_token() -> None:
    # The library raises bare Exception, for short texts and for long ones on another path.
    incomplete = make(word_level(unk_token="[UNKNOWN]"))  # noqa: S106 - a token of another kind
    assert incomplete.encode("the [MASK]").mask_positions.tolist() == [2]
    for text in ("the cat", "the cat " * LONG_TEXT_CHARS, TextPair("the", "cat")):
        for read in (incomplete.encode, incomplete.encode_words):
            with pytest.raises(InvalidRequestError, match="tokenizer cannot read the text"):
                read(text)
    with pytest.raises(InvalidRequestError, match="tokenizer cannot read the text"):
        incomplete.encode_target("cat")


def test_a_text_at_which_the_library_panics_is_rejected() -> None:
    # A panic is no Exception.
    description = word_level() | {"pre_tokenizer": {"type": "FixedLength", "length": 0}}
    with pytest.raises(InvalidRequestError, match="tokenizer cannot read the text"):
        make(description).encode("the dog")


def test_other_errors_of_the_process_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # An interruption is neither an invalid text nor an invalid bundle.
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    whole = make()
    monkeypatch.setattr(whole, "_tokenizer", SimpleNamespace(encode=interrupt))
    with pytest.raises(KeyboardInterrupt):
        whole.encode_words("the dog")
    monkeypatch.setattr("fillmask.tokenization.tokenizer.load_tokenizer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make()


def template(**changes: Any) -> dict[str, Any]:
    """Return a tokenizer.json with another post-processor."""
    description: dict[str, Any] = json.loads(build_tokenizer().to_str())
    description["post_processor"] |= changes
    return description


A, B = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")


@pytest.mark.parametrize(
    ("changes", "pairs", "reason"),
    [
        ({"single": [A, A]}, False, "must keep each text once and in order"),
        ({"single": []}, False, "must keep each text once and in order"),
        ({"pair": [B, A]}, True, "must keep each text once and in order"),
        ({"pair": [A, B, A]}, True, "must keep each text once and in order"),
        ({"special_tokens": {}}, False, "is not a valid tokenizer"),  # the library panics
    ],
)
def test_texts_in_other_places_are_rejected(
    changes: dict[str, Any], reason: str, *, pairs: bool
) -> None:
    content = json.dumps(template(**changes)).encode()
    with pytest.raises(BundleError, match=reason):
        Tokenizer(content, "[MASK]", MASK_ID, range(len(SPECIAL)), pairs=pairs)


def test_a_model_without_pairs_may_have_any_template_of_pairs() -> None:
    assert make(template(pair=[A, B, A])).encode("the [MASK]").mask_positions.tolist() == [2]


def test_a_mask_that_the_library_cannot_tokenize_is_rejected() -> None:
    description = word_level() | {"post_processor": template(special_tokens={})["post_processor"]}
    with pytest.raises(BundleError, match=r"tokenizer\.json cannot tokenize \[MASK\]"):
        make(description)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab": {**dict(zip(SPECIAL, range(5), strict=True)), "dog": MASK_ID}},
        {"vocab": {**dict(zip(SPECIAL[:4], range(4), strict=True)), "dog": MASK_ID}},
        {"continuing_subword_prefix": 0.5},
    ],
)
def test_a_word_with_the_id_of_the_mask_or_a_bad_prefix_is_rejected(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(BundleError, match="is not a valid tokenizer"):
        make(word_level(**changes))


ENCODE_A_LONG_TEXT = """
import os, sys
from fillmask.parameters.texts import TextPair
from fillmask.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer
tokenizer = Tokenizer(sys.stdin.buffer.read(), "[MASK]", int(sys.argv[1]), [])
before = len(os.listdir("/proc/self/task"))
tokenizer.encode("dog " * LONG_TEXT_CHARS)
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_a_long_text_starts_no_threads() -> None:
    # The tokenizers library starts one thread per CPU by default, beside the computing threads.
    done = subprocess.run(
        [sys.executable, "-c", ENCODE_A_LONG_TEXT, str(MASK_ID)],
        input=build_tokenizer().to_str().encode(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"0\n"


def test_a_target_with_a_mask_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(
        InvalidRequestError, match=r'"the \[MASK\]" has a special token of the model'
    ):
        tokenizer.encode_target("the [MASK]")


@pytest.mark.parametrize(
    ("text", "token", "sequence"),
    [
        ("walk [MASK]", "##ing", "walking"),
        ("The  [MASK] IS  here", "dog", "The  dog IS  here"),
        ("[MASK] and [MASK]", "cat", "cat and [MASK]"),
        ("a walk [MASK]!", "##ing", "a walking!"),
        ("[MASK] x", "##ing", "##ing x"),
        ("  [MASK] x", "##ing", "  ##ing x"),
    ],
)
def test_sequence(text: str, token: str, sequence: str, tokenizer: Tokenizer) -> None:
    # A continuation joins the word before it. Otherwise a continuation keeps its mark.
    slot = tokenizer.mask_slot(text, tokenizer.encode(text))
    assert slot.fill(VOCABULARY.index(token)) == (token, sequence)


def test_a_tokenizer_without_continuations() -> None:
    # A word-level tokenizer marks no continuations.
    vocabulary = {token: i for i, token in enumerate(VOCABULARY)}
    word_level = TokenizersTokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of another kind
    word_level.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = Tokenizer(word_level.to_str().encode(), "[MASK]", MASK_ID, range(5))
    text = "walk [MASK]"
    filled = tokenizer.mask_slot(text, tokenizer.encode(text)).fill(VOCABULARY.index("##ing"))
    assert filled == ("##ing", "walk ##ing")

"""Agreement of targets and texts of tokens with transformers, for every class.

The independent oracle is transformers on the same directory. tests/parity compares ids and spans.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import AutoTokenizer
from transformers.pipelines.fill_mask import FillMaskPipeline

from fillmask.errors import InvalidRequestError
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_model.tokenizers.loading import read_tokenizer_files
from fillmask_model.tokenizers.special_tokens import read_tokenizer
from tests.model.tokenizers.tokenizer_directories import (
    KINDS,
    Kind,
    write_directory,
)

TARGETS = (
    *("Paris", " Paris", "paris", "ĠParis", "▁Paris", "the", " the", "is", " is", "ing", "##ing"),
    *("tea", "(", ")", ".", "1999", "A", " A", "ACG", "日", "zzzzqq"),
)


@dataclass(frozen=True)
class Pair:
    """Our tokenizer and the oracle, from one directory."""

    kind: Kind
    ours: Tokenizer
    oracle: Any


def read(directory: Path, model_type: str) -> Tokenizer:
    """Return the tokenizer as in an exported bundle."""
    files = read_tokenizer_files(directory, model_type)
    assert files is not None
    added = read_tokenizer(files.tokenizer_json).get_added_tokens_decoder()
    special = {one.content: token_id for token_id, one in added.items() if one.special}
    mask_id = special[files.mask_token]
    return Tokenizer(files.tokenizer_json, files.mask_token, mask_id, list(special.values()))


PUBLICATIONS = [
    pytest.param((name, fast), id=f"{name}, {'tokenizer.json' if fast else 'vocabulary files'}")
    for name, kind in KINDS.items()
    for fast in (False, True)
    if not (kind.fast_only and not fast) and not (kind.slow_only and fast)
]


@pytest.fixture(scope="module", params=PUBLICATIONS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Pair of tokenizers of one class, in one of its published forms."""
    name, fast = request.param
    directory = tmp_path_factory.mktemp("tokenizer") / "files"
    write_directory(directory, KINDS[name], fast=fast)
    assert (directory / "tokenizer.json").is_file() is fast
    ours = read(directory, KINDS[name].model_type)
    return Pair(KINDS[name], ours, AutoTokenizer.from_pretrained(directory))


def test_special_tokens_are_those_of_transformers(pair: Pair) -> None:
    # CamemBERT's placeholders also count as special tokens.
    roles = pair.oracle.special_tokens_map
    named = {pair.oracle.convert_tokens_to_ids(roles[r]) for r in roles if r.endswith("_token")}
    assert len(named) >= 5
    assert named <= pair.ours.special_token_ids
    others = {pair.oracle.convert_ids_to_tokens(i) for i in pair.ours.special_token_ids - named}
    assert others <= {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}


def test_tokens_read_as_those_of_transformers(pair: Pair) -> None:
    # White space may differ. No token appears as a byte-level name or half a character.
    for token_id in range(len(pair.oracle)):
        text = pair.ours.token_str(token_id)
        assert text.strip() == pair.oracle.decode([token_id]).strip()
        assert not text.startswith(("Ġ", "Ċ", "▁"))


def test_what_a_token_reads_is_the_target_that_means_it(pair: Pair) -> None:
    # Both " Paris" and "Paris" mean the word, if it is one token, and "##Paris" a piece of a word.
    # Half a character is not a valid target.
    texts = {i: pair.ours.token_str(i) for i in range(len(pair.oracle))}
    if pair.ours.has_spaces_in_tokens:
        texts = {i: f"##{text}" if text[:1].isalnum() else text for i, text in texts.items()}
    special = pair.ours.special_token_ids
    ordinary = [i for i, text in texts.items() if i not in special and "\ufffd" not in text]
    assert len(ordinary) > 25
    assert [pair.ours.encode_target(texts[i]) for i in ordinary] == [(i,) for i in ordinary]


def test_targets_mean_what_they_mean_to_transformers(pair: Pair) -> None:
    # The pipeline of transformers replaces a target by the first of its tokens. For it, "Paris" is
    # a piece of a word if tokens have spaces, so it gets the target with a space.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    resolve: Any = FillMaskPipeline.get_target_ids
    pipeline = SimpleNamespace(tokenizer=pair.oracle)
    for given in TARGETS:
        if pair.ours.has_spaces_in_tokens and given.startswith("##"):  # a piece, for us
            continue
        is_word = pair.ours.has_spaces_in_tokens and given[:1].isalnum() and given[:1] != "Ġ"
        target = f" {given}" if is_word else given
        pieces = pair.oracle(target, add_special_tokens=False)["input_ids"]
        try:
            ids = pair.ours.encode_target(given)
        except InvalidRequestError:
            assert not pieces or pair.oracle.unk_token_id in pieces, target
            assert target not in pair.oracle.get_vocab()
        else:
            alone = len(ids) == 1
            assert list(ids) == (resolve(pipeline, [target]).tolist() if alone else pieces)


@pytest.mark.parametrize("index", [0, 1])
def test_sequences_are_those_of_transformers(pair: Pair, index: int) -> None:
    # The test fills a mask with every ordinary token.
    # The comparison ignores changes that transformers makes outside of the mask. WordPiece loses
    # capital letters, accents and white space. ESM's tokenizer puts spaces between letters.
    # SentencePiece puts a space behind every mask. The comparison with byte-level BPE and
    # SentencePiece is exact, except for a space at the start.
    text = pair.kind.around[index].replace("{}", pair.ours.mask_token)
    encoded = pair.ours.encode(text)
    blank = pair.ours.mask_slot(text, encoded)
    ids = encoded.input_ids.tolist()
    assert pair.oracle.unk_token_id not in ids
    exact = pair.kind.model_type in {"roberta", "modernbert", "xlm-roberta", "camembert"}
    for token_id in set(range(len(pair.oracle))) - pair.ours.special_token_ids:
        ids[encoded.mask_positions[0]] = token_id
        theirs = pair.oracle.decode(ids, skip_special_tokens=True)
        token_str, ours = blank.fill(token_id)
        if exact:
            assert ours == theirs.removeprefix(" "), token_str
        else:
            assert "".join(ours.lower().split()) == "".join(theirs.lower().split()), token_str

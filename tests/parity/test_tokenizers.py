"""Agreement with transformers on tokenizers of every class and of published ones, or a refusal.

A bundle's tokenizer is made as the export makes it. Its oracle is AutoTokenizer on the same files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer
from transformers.pipelines.fill_mask import FillMaskPipeline

from fillmask.bundles.description import TruncationSide
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization import tokenizer as tokenizers_of_bundles
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.truncation import truncate
from fillmask_export.bundle import reading
from fillmask_export.heads.errors import VerificationError
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.tokenizers.loading import read_tokenizer_files
from tests.model.tokenizers.tokenizer_directories import KINDS, write_directory
from tests.parity.published_tokenizers import MASK, PUBLISHED, texts, write_published

MAX_TOKENS, SHORT, UNLIMITED = 100, 12, 10**6
LONG, JOINED = 10, 5  # long texts, and the texts in each
MAX_TYPED = 5  # texts with special tokens as characters, which the export's own check reads
SIDES: tuple[TruncationSide, ...] = ("right", "left")
WITH_TYPES = {"albert", "bert", "electra", "ernie", "megatron-bert", "nomic_bert"}
TARGETS = (
    *("Paris", " Paris", "paris", "ĠParis", "▁Paris", "the", " the", "is", " is", "ing", "##ing"),
    *("tea", "(", ")", ".", "1999", "A", " A", "ACG", "日", "zzzzqq"),
)
# classes in both published forms, of which the others have one
TWICE = {"BERT, cased", "RoBERTa", "XLM-RoBERTa", "ALBERT"}
FORMS = [
    (name, fast)
    for name, kind in KINDS.items()
    for fast in ((False, True) if name in TWICE else (not kind.slow_only,))
]
_equal: dict[tuple[object, ...], bool] = {}  # pairs of tokenizers that agree, with types or not


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


@pytest.fixture
def _no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the export's own check, which has fewer texts, and words, which nothing reads."""
    monkeypatch.setattr(reading, "check_tokens", lambda *_: {})
    monkeypatch.setattr(tokenizers_of_bundles, "word_indices", lambda *_: np.zeros(0))


def read(directory: Path, model_type: str) -> tuple[Tokenizer, bytes]:
    """Return the tokenizer of a bundle, and its file.

    Raises:
        ValueError, VerificationError: the export refuses the tokenizer.
    """
    files = read_tokenizer_files(directory, model_type)
    assert files is not None
    types = 1 + (model_type in WITH_TYPES)
    sizes = {"vocab_size": len(files.reference), "max_positions": MAX_TOKENS}
    model: Any = SimpleNamespace(config=SimpleNamespace(type_vocab_size=types, **sizes))
    checkpoint = Checkpoint(
        model=model,
        tokenizer_json=files.tokenizer_json,
        head_is_new=False,
        mask_token=files.mask_token,
        reference=files.reference,
    )
    sample = SampleTexts(["A"], ["A"])
    made = reading.Reading.of_checkpoint(
        checkpoint, sample, max_tokens=None, special=None, int8=False
    )
    return made.tokenizer, files.tokenizer_json


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without white space at its ends, unless it has nothing else."""
    piece = text[start:end]
    if not piece.strip():
        return start, end
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


@dataclass(frozen=True)
class Sides:
    """Our tokenizer, the oracle, and whether the published model has token types."""

    ours: Tokenizer
    oracle: Any
    has_types: bool

    def apart(
        self, inputs: list[Any], limit: int = UNLIMITED, side: TruncationSide = "right"
    ) -> list[InputText]:
        """Return the texts, or the pairs, with other ids, types or spans, truncated to a limit."""
        self.oracle.truncation_side = side
        are_pairs = isinstance(inputs[0], TextPair)
        names = ("text", "text_pair") if are_pairs else ()
        parts = [[getattr(one, name) for one in inputs] for name in names] or [inputs]
        theirs = self.oracle(*parts, truncation=limit < UNLIMITED, max_length=limit)
        of_type_0 = [[0] * len(ids) for ids in theirs["input_ids"]]
        types = theirs.get("token_type_ids", of_type_0) if self.has_types else of_type_0
        found: list[InputText] = []
        for index, (one, ids) in enumerate(zip(inputs, theirs["input_ids"], strict=True)):
            words: Any = self.ours.encode_words(one)
            fits = len(words.input_ids) <= limit
            cut = words if fits else truncate(words, limit, "", side)
            own = of_type_0[index] if cut.token_types is None else cut.token_types.tolist()
            same = (cut.input_ids.tolist(), own) == (ids, types[index])
            if same and limit == UNLIMITED and not are_pairs:
                if self.oracle.is_fast:
                    offsets = theirs.encodings[index].offsets
                    spans = zip(words.spans, words.positions, strict=True)
                    same = all(span in {offsets[p], trimmed(one, *offsets[p])} for span, p in spans)
                if self.ours._words is not None:  # encode has a cache of words
                    same &= self.ours.encode(one).input_ids.tolist() == ids
            found += [] if same else [one]
        return found


def check(directory: Path, row: dict[str, Any], templates: tuple[str, ...]) -> None:
    """Compare the tokenizers of a directory, or expect a refusal."""
    write_published(directory, row)
    model_type = row["config.json"]["model_type"]
    if "refused" in row:
        with pytest.raises((ValueError, VerificationError), match=row["refused"]) as caught:
            read(directory, model_type)
        assert "\n" not in str(caught.value)
        return
    (ours, content), oracle = read(directory, model_type), AutoTokenizer.from_pretrained(directory)
    assert (ours.mask_token, ours.truncation_side) == (oracle.mask_token, oracle.truncation_side)
    sides = Sides(ours, oracle, model_type in WITH_TYPES)
    assert ours.has_token_types <= sides.has_types
    backend = oracle.backend_tokenizer.to_str() if oracle.is_fast else None
    key = (content, ours.special_tokens, backend, type(oracle), len(templates))
    if _equal.get(key) in {True, sides.has_types}:  # with types is more than without
        return
    chosen = [text.replace(MASK, ours.mask_token) for text in templates]
    plain = [text for text in chosen if not ours.find_typed(text)]
    assert len(plain) >= len(chosen) - MAX_TYPED
    assert sides.apart(plain) == []
    pairs = list(map(TextPair, plain[:-5:10], plain[5::10]))
    assert not ours.reads_pairs or sides.apart(pairs) == []
    long = [" ".join(plain[start::LONG][:JOINED]) for start in range(LONG)]
    for side in SIDES:
        assert sides.apart(long, SHORT, side) == sides.apart(long, MAX_TOKENS, side) == []
        if ours.reads_pairs and oracle.is_fast:  # code in Python truncates pairs to other lengths
            assert sides.apart(pairs[::20], SHORT, side) == []
    _equal[key] = sides.has_types


@pytest.mark.slow
@pytest.mark.usefixtures("_no_check")
@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["id"])
def test_published_tokenizers_agree_or_are_refused(row: dict[str, Any], tmp_path: Path) -> None:
    assert len(texts()) == 2000
    check(tmp_path / "files", row, texts())


@pytest.mark.parametrize(
    "row", [one for one in PUBLISHED if "quick" in one], ids=lambda row: row["id"]
)
def test_the_export_accepts_or_refuses_every_form(row: dict[str, Any], tmp_path: Path) -> None:
    check(tmp_path / "files", row, texts()[::20])


@pytest.fixture(scope="module", params=FORMS, ids=lambda form: f"{form[0]}{', fast' * form[1]}")
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Tokenizer, Any]:
    """Class of a tokenizer, ours and the oracle, in one of its published forms."""
    name, fast = request.param
    directory = tmp_path_factory.mktemp("tokenizer") / "files"
    write_directory(directory, KINDS[name], fast=fast)
    assert (directory / "tokenizer.json").is_file() is fast
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "check_tokens", lambda *_: {})
        ours, _ = read(directory, KINDS[name].model_type)
    return name, ours, AutoTokenizer.from_pretrained(directory)


def test_tokens_read_as_those_of_transformers(pair: tuple[str, Tokenizer, Any]) -> None:
    # White space may differ. No token appears as a byte-level name or half a character. CamemBERT's
    # placeholders also count as special tokens.
    _, ours, oracle = pair
    for token_id in range(len(oracle)):
        text = ours.token_str(token_id)
        assert text.strip() == oracle.decode([token_id]).strip()
        assert not text.startswith(("Ġ", "Ċ", "▁"))
    roles = oracle.special_tokens_map
    named = {oracle.convert_tokens_to_ids(roles[r]) for r in roles if r.endswith("_token")}
    assert len(named) >= 5
    assert named <= ours.special_token_ids
    others = {oracle.convert_ids_to_tokens(i) for i in ours.special_token_ids - named}
    assert others <= {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}


def test_targets_mean_what_they_mean_to_transformers(pair: tuple[str, Tokenizer, Any]) -> None:
    # Both " Paris" and "Paris" mean the word, if it is one token, and "##Paris" a piece of a word.
    # Half a character is not a valid target. The pipeline of transformers replaces a target by the
    # first of its tokens. For it, "Paris" is a piece of a word if tokens have spaces, so it gets
    # the target with a space.
    _, ours, oracle = pair
    read_as = {i: ours.token_str(i) for i in range(len(oracle))}
    if ours.has_spaces_in_tokens:
        read_as = {i: f"##{text}" if text[:1].isalnum() else text for i, text in read_as.items()}
    special = ours.special_token_ids
    ordinary = [i for i, text in read_as.items() if i not in special and "\ufffd" not in text]
    assert len(ordinary) > 25
    assert [ours.encode_target(read_as[i]) for i in ordinary] == [(i,) for i in ordinary]
    resolve: Any = FillMaskPipeline.get_target_ids
    pipeline = SimpleNamespace(tokenizer=oracle)
    for given in TARGETS:
        if ours.has_spaces_in_tokens and given.startswith("##"):  # a piece, for us
            continue
        is_word = ours.has_spaces_in_tokens and given[:1].isalnum() and given[:1] != "Ġ"
        target = f" {given}" if is_word else given
        pieces = oracle(target, add_special_tokens=False)["input_ids"]
        try:
            ids = ours.encode_target(given)
        except InvalidRequestError:
            assert not pieces or oracle.unk_token_id in pieces, target
            assert target not in oracle.get_vocab()
        else:
            alone = len(ids) == 1
            assert list(ids) == (resolve(pipeline, [target]).tolist() if alone else pieces)


@pytest.mark.parametrize("index", [0, 1])
def test_sequences_are_those_of_transformers(pair: tuple[str, Tokenizer, Any], index: int) -> None:
    # The test fills a mask with every ordinary token.
    # The comparison ignores changes that transformers makes outside of the mask. WordPiece loses
    # capital letters, accents and white space. ESM's tokenizer puts spaces between letters.
    # SentencePiece puts a space behind every mask. The comparison with byte-level BPE and
    # SentencePiece is exact, except for a space at the start.
    name, ours, oracle = pair
    text = KINDS[name].around[index].replace("{}", ours.mask_token)
    encoded = ours.encode(text)
    blank = ours.mask_slot(text, encoded)
    ids = encoded.input_ids.tolist()
    assert oracle.unk_token_id not in ids
    exact = KINDS[name].model_type in {"roberta", "modernbert", "xlm-roberta", "camembert"}
    for token_id in set(range(len(oracle))) - ours.special_token_ids:
        ids[encoded.mask_positions[0]] = token_id
        theirs = oracle.decode(ids, skip_special_tokens=True)
        token_str, sequence = blank.fill(token_id)
        if exact:
            assert sequence == theirs.removeprefix(" "), token_str
        else:
            assert "".join(sequence.lower().split()) == "".join(theirs.lower().split()), token_str

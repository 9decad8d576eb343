"""tokenizer.json of a bundle, and texts that its tokenizer reads."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from tokenizers import Tokenizer as TokenizersTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from fillmask.bundles.validation import List, Size, TokenId
from fillmask.errors import BundleError, InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer
from tests.fuzzing.target import FindingError, Target, check_message
from tests.service.tiny import SPECIAL, build_tokenizer

_MAX_TOKENS = 24
_MAX_TEXT_CHARS = 3_000
_TEXTS = (
    "Paris is the [MASK] of France.",
    "[MASK] déjà vu, 東京 😀\t[SEP] e\u0301 ##ing",
    "The dogs [MASK] " + "walked, and " * 20,
)
_NAMES = ("dog", "##ing", " paris", "[MASK]", "xyz", "東", "", "Ġthe")


class _Input(BaseModel):
    """The content of tokenizer.json, the fields of bundle.json about it, and texts."""

    model_config = ConfigDict(strict=True, extra="forbid")

    tokenizer: Any
    mask_token: str = "[MASK]"  # noqa: S105 - a token of another kind
    mask_token_id: TokenId = 4
    special_token_ids: List[TokenId] = (0, 1, 2, 3, 4)
    token_types: Size = 1
    texts: List[str] = _TEXTS
    targets: List[str] = _NAMES


class TokenizerFile(Target):
    """A tokenizer.json with texts to tokenize.

    An input is an object with the fields of `_Input`. Any other input is the content of a
    tokenizer.json.
    """

    more_words = (
        *("BertNormalizer", "BertPreTokenizer", "WhitespaceSplit", "Punctuation", "Prepend"),
        *("NFKD", "Lowercase", "StripAccents", "Precompiled", "precompiled_charsmap", "Regex"),
        *("Isolated", "Removed", "MergedWithNext", "BertProcessing", "RobertaProcessing"),
        *("always", "first", "FixedLength", "length", "UnicodeScripts", "Nmt", "ByteFallback"),
        *("CTC", "Fuse", "end_of_word_suffix", "ignore_merges", "byte_fallback", "unk_id"),
        *("(a+)+$", "\\s+", "(?=x)", ".", "a|b", "\\p{L}+", "e\u0301", "İ", "\u200b", "\u3000"),
    )

    def seeds(self) -> Iterator[bytes]:
        for tokenizer in (build_tokenizer(), _word_level(), _byte_pairs(), _unigram()):
            description = json.loads(tokenizer.to_str())
            yield json.dumps({"tokenizer": description}).encode()
            fields = {"token_types": 2, "texts": _TEXTS[:1], "targets": ["dog"]}
            yield json.dumps({"tokenizer": description} | fields).encode()
        yield build_tokenizer().to_str().encode()

    def check(self, data: bytes) -> None:
        given, content = _read_input(data)
        special_ids = {*given.special_token_ids, given.mask_token_id}
        try:
            tokenizer = Tokenizer(
                content,
                given.mask_token,
                given.mask_token_id,
                sorted(special_ids),
                pairs=True,
                token_types=given.token_types,
            )
        except BundleError as error:
            check_message(str(error))
            return
        texts = [text[:_MAX_TEXT_CHARS] for text in given.texts[:8]]
        for text in texts:
            _check_text(tokenizer, text, len(data))
        for first, second in pairwise(texts):
            _check_text(tokenizer, TextPair(first, second), len(data))
        for target in given.targets[:20]:
            try:
                ids = tokenizer.encode_target(target)
            except InvalidRequestError as error:
                check_message(error.text)
                continue
            tokenizer.target_text(target, ids)
            tokenizer.detokenizer.join(ids)


def _read_input(data: bytes) -> tuple[_Input, bytes]:
    try:
        given = _Input.model_validate_json(data)
        # pydantic's parser refuses unpaired surrogates, but the standard library reads them
        return given, json.dumps(json.loads(data)["tokenizer"]).encode()
    except (ValidationError, ValueError, RecursionError):
        return _Input(tokenizer=None), data


def _check_text(tokenizer: Tokenizer, text: InputText, size_bytes: int) -> None:
    """Read a text for every task.

    Args:
        size_bytes: size of the tokenizer's description.
    """
    reader = TextReader(tokenizer, _MAX_TOKENS)
    try:
        encoded = tokenizer.encode(text)
        _check_encoded(encoded, text, tokenizer)
        _check_word_cache(tokenizer, text)
        if len(encoded.input_ids) > 100 + (1 + len(text)) * size_bytes:
            raise FindingError(f"{len(text)} characters have {len(encoded.input_ids)} tokens")
    except InvalidRequestError as error:
        check_message(error.text)
    try:
        for window in reader.read_windows(text, "inputs", 2):
            _check_encoded(window.encoded, text, tokenizer)
            if len(window.encoded.input_ids) > _MAX_TOKENS:
                raise FindingError(f"a window has {len(window.encoded.input_ids)} tokens")
    except InvalidRequestError as error:
        check_message(error.text)
    for read in (reader.read_masked, reader.read_plain, reader.read_words):
        try:
            read(text, "inputs")
        except InvalidRequestError as error:
            check_message(error.text)


def _check_encoded(encoded: EncodedText, text: InputText, tokenizer: Tokenizer) -> None:
    """Check that masks are where they seem to be, and fill them."""
    at_masks = encoded.input_ids[encoded.mask_positions]
    if not np.all(at_masks == tokenizer.mask_token_id):
        raise FindingError(f"the ids {at_masks!r} are not masks")
    if len(encoded.mask_spans) != len(encoded.mask_positions):
        raise FindingError("masks and spans differ in number")
    for index, (start, end) in enumerate(encoded.mask_spans):
        if not 0 <= start <= end <= len(text):
            raise FindingError(f"a mask has the span {start} to {end} of {len(text)} characters")
        slot = tokenizer.mask_slot(str(text), encoded, index)
        for token_id in (0, 5, 20):
            slot.fill(token_id)


def _check_word_cache(tokenizer: Tokenizer, text: InputText) -> None:
    """Compare the cache of words with the tokenizers library."""
    cache = tokenizer._words
    if cache is None or not isinstance(text, str):
        return
    cached = cache.encode(text)
    tokenizer._words = None
    try:
        plain = tokenizer.encode(text)
    finally:
        tokenizer._words = cache
    if cached is not None and (
        cached.input_ids.tolist() != plain.input_ids.tolist()
        or cached.mask_spans != plain.mask_spans
        or cached.mask_positions.tolist() != plain.mask_positions.tolist()
    ):
        raise FindingError(f"the cache gives {cached!r} instead of {plain!r}")


def _with_special(tokenizer: TokenizersTokenizer, names: Sequence[str]) -> TokenizersTokenizer:
    tokenizer.add_special_tokens(list(names))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def _word_level() -> TokenizersTokenizer:
    vocabulary = {
        name: i for i, name in enumerate([*SPECIAL, "the", "dog", "Paris", ".", "[", "]"])
    }
    tokenizer = TokenizersTokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of another kind
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace("é", "e")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits()]
    )
    return _with_special(tokenizer, SPECIAL)


def _byte_pairs() -> TokenizersTokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*SPECIAL, *alphabet, "Ġt", "Ġth", "Ġthe", "do", "dog"]
    merges = [("Ġ", "t"), ("Ġt", "h"), ("Ġth", "e"), ("d", "o"), ("do", "g")]
    tokenizer = TokenizersTokenizer(models.BPE({name: i for i, name in enumerate(names)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _with_special(tokenizer, SPECIAL)


def _unigram() -> TokenizersTokenizer:
    scored = [
        ("▁", -2.0),
        ("▁the", -3.0),
        ("the", -3.5),
        ("▁d", -4.0),
        ("og", -4.0),
        ("<0xC3>", -9),
    ]
    letters = [(letter, -6.0) for letter in "abcdefghinoprstw.,"]
    tokenizer = TokenizersTokenizer(
        models.Unigram([*((name, 0.0) for name in SPECIAL), *scored, *letters], unk_id=1)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _with_special(tokenizer, SPECIAL)


TARGET = TokenizerFile

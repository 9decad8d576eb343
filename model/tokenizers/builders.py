"""Tokenizers from vocabulary files, put together from the tokenizers library's own parts.

What each does is what Hugging Face's class of its name does; special tokens are not yet marked, and
nothing frames a text yet.
"""

from __future__ import annotations

import re
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
)

from model.tokenizers.settings import TokenizerSettings
from model.tokenizers.vocabulary import (
    SentencePieces,
    read_merges,
    read_sentencepiece,
    read_vocabulary_ids,
    read_vocabulary_lines,
)

Roles = dict[str, str]
"""The text of special tokens by role, as in {"mask_token": "<mask>"}."""

# what Python's str.split takes for white space, some of which Unicode does not
_WHITE_SPACE = r"[\s\x1c-\x1f]+"


def build_word_pieces(directory: Path, roles: Roles, settings: TokenizerSettings) -> Tokenizer:
    """BERT's and MPNet's: words, then pieces of them, from vocab.txt."""
    vocabulary = read_vocabulary_lines(directory / "vocab.txt")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=roles["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=settings.flag("do_lower_case", default=True) is True,
        strip_accents=settings.flag("strip_accents", default=None),
        handle_chinese_chars=settings.flag("tokenize_chinese_chars", default=True) is True,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def build_byte_pairs(directory: Path, _: Roles, settings: TokenizerSettings) -> Tokenizer:
    """RoBERTa's: byte-level BPE from vocab.json and merges.txt."""
    vocabulary = read_vocabulary_ids(directory / "vocab.json")
    merges = read_merges(directory / "merges.txt", vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=settings.flag("add_prefix_space", default=False) is True
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def build_amino_acids(directory: Path, roles: Roles, _: TokenizerSettings) -> Tokenizer:
    """ESM's, from vocab.txt: letters are words, with or without white space between them."""
    vocabulary = {
        token.strip(): i for token, i in read_vocabulary_lines(directory / "vocab.txt").items()
    }
    ordinary = sorted(set(vocabulary) - set(roles.values()) - {""}, key=len, reverse=True)
    letters = "|".join(map(re.escape, ordinary))
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=roles["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WHITE_SPACE), "removed"),
            pre_tokenizers.Split(Regex(letters), "isolated"),
        ]
    )
    return tokenizer


def build_xlm_roberta(directory: Path, roles: Roles, settings: TokenizerSettings) -> Tokenizer:
    """XLM-RoBERTa's, from sentencepiece.bpe.model.

    Four special tokens of fairseq's stand in the place of the model's first three pieces.
    """
    path = directory / "sentencepiece.bpe.model"
    model = read_sentencepiece(path)
    if model.special < 3:
        raise ValueError(f"{path} does not begin with three special pieces, as XLM-RoBERTa's does")
    own = [(roles[r], 0.0) for r in ("bos_token", "pad_token", "eos_token", "unk_token")]
    pieces = [*own, *model.pieces[3:], (roles["mask_token"], 0.0)]
    return _unigram(model, pieces, roles, settings, _normalization(model))


def build_camembert(directory: Path, roles: Roles, settings: TokenizerSettings) -> Tokenizer:
    """CamemBERT's, from sentencepiece.bpe.model.

    Five special tokens of fairseq's stand in the place of the model's first piece.
    """
    path = directory / "sentencepiece.bpe.model"
    model = read_sentencepiece(path)
    if model.special < 1:
        raise ValueError(f"{path} does not begin with a special piece, as CamemBERT's does")
    own = [
        *[("<s>NOTUSED", 0.0), (roles["pad_token"], 0.0), ("</s>NOTUSED", 0.0)],
        *[(roles["unk_token"], 0.0), ("<unk>NOTUSED", -100.0)],
    ]
    pieces = [*own, *model.pieces[1:], (roles["mask_token"], 0.0)]
    return _unigram(model, pieces, roles, settings, _normalization(model))


def build_albert(directory: Path, roles: Roles, settings: TokenizerSettings) -> Tokenizer:
    """ALBERT's, from spiece.model."""
    model = read_sentencepiece(directory / "spiece.model")
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
    ]
    if not settings.flag("keep_accents", default=False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if settings.flag("do_lower_case", default=True):
        steps.append(normalizers.Lowercase())
    return _unigram(model, model.pieces, roles, settings, steps + _normalization(model))


def _normalization(model: SentencePieces) -> list[normalizers.Normalizer]:
    return [normalizers.Precompiled(model.normalization)] if model.normalization else []


def _unigram(
    model: SentencePieces,
    pieces: list[tuple[str, float]],
    roles: Roles,
    settings: TokenizerSettings,
    steps: list[normalizers.Normalizer],
) -> Tokenizer:
    ids = {piece: i for i, (piece, _) in enumerate(pieces)}
    if (unknown := ids.get(roles["unk_token"])) is None:
        raise ValueError(f"{settings.path.parent}: the SentencePiece model lacks an unknown piece")
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = "always" if settings.flag("add_prefix_space", default=True) else "never"
    spaces = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    tokenizer.add_special_tokens([token for token in model.control if token in ids])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in model.user_defined])
    return tokenizer

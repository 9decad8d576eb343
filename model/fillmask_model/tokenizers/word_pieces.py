"""Trainer of WordPiece tokenizers (Wu et al. 2016), as in BERT (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer

DEFAULT_VOCAB_SIZE = 30_000
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_word_pieces(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a BERT-style tokenizer on texts, which folds case and strips accents.

    The tokenizers library breaks ties at random. Two trainings on the same texts can therefore
    give slightly different vocabularies.

    Args:
        vocab_size: maximum number of entries, special tokens included.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 - not a password
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIAL_TOKENS), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")],
    )
    return tokenizer

"""Tokenizer classes with convertible vocabulary files, by their Hugging Face names."""

from __future__ import annotations

from dataclasses import dataclass, replace

Roles = dict[str, str]
"""Text of special tokens by role, such as {"mask_token": "<mask>"}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerClass:
    """Tokenizer class of transformers.

    Attributes:
        model_type: model type of the checkpoints that use the class by default.
        files: names of the vocabulary files.
        roles: default text of the special tokens by role.
        mask_takes_space: whether the white space before a mask belongs to the mask.
        placeholders: special tokens without a role.
        leading_special_pieces: number of special pieces at the start of the SentencePiece model.
            The class replaces these pieces with its own special tokens.
    """

    name: str
    model_type: str
    files: tuple[str, ...]
    roles: Roles
    mask_takes_space: bool = True
    placeholders: tuple[str, ...] = ()
    leading_special_pieces: int = 0


_BERT = TokenizerClass(
    name="BertTokenizer",
    model_type="bert",
    files=("vocab.txt",),
    roles={
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "mask_token": "[MASK]",
    },
    mask_takes_space=False,
)
_ROBERTA = TokenizerClass(
    name="RobertaTokenizer",
    model_type="roberta",
    files=("vocab.json", "merges.txt"),
    roles={
        "cls_token": "<s>",
        "sep_token": "</s>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
    },
)
_CLASSES = (
    _BERT,
    replace(_BERT, name="DistilBertTokenizer", model_type="distilbert"),
    replace(_BERT, name="ElectraTokenizer", model_type="electra"),
    TokenizerClass(
        name="MPNetTokenizer",
        model_type="mpnet",
        files=("vocab.txt",),
        roles=_ROBERTA.roles | {"unk_token": "[UNK]"},
    ),
    _ROBERTA,
    TokenizerClass(
        name="XLMRobertaTokenizer",
        model_type="xlm-roberta",
        files=("sentencepiece.bpe.model",),
        roles=_ROBERTA.roles,
        leading_special_pieces=3,
    ),
    TokenizerClass(
        name="CamembertTokenizer",
        model_type="camembert",
        files=("sentencepiece.bpe.model",),
        roles=_ROBERTA.roles,
        placeholders=("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"),
        leading_special_pieces=1,
    ),
    TokenizerClass(
        name="AlbertTokenizer",
        model_type="albert",
        files=("spiece.model",),
        roles=_BERT.roles | {"unk_token": "<unk>", "pad_token": "<pad>"},
    ),
    TokenizerClass(
        name="EsmTokenizer",
        model_type="esm",
        files=("vocab.txt",),
        roles={
            "cls_token": "<cls>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        },
        mask_takes_space=False,
    ),
)
CLASSES = {kind.name: kind for kind in _CLASSES}
CLASS_OF_MODEL_TYPE = {kind.model_type: kind for kind in _CLASSES}

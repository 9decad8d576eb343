"""What the tokenizers of one class have in common; the classes are Hugging Face's, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer, processors

from model.tokenizers.builders import (
    Roles,
    build_albert,
    build_amino_acids,
    build_byte_pairs,
    build_camembert,
    build_word_pieces,
    build_xlm_roberta,
)
from model.tokenizers.settings import TokenizerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A class of tokenizers.

    Attributes:
        files: its vocabulary.
        build: makes the tokenizer of a directory.
        roles: its special tokens, where the directory does not name them.
        start, end: the roles that stand before and behind a text.
        doubled_end: the end stands twice between two texts.
        second_type: the type of the second of two texts.
        trims: offsets leave out the space that is part of a token.
        mask_takes_space: the white space before a mask is the mask's.
        never_text: special tokens that have no role.
    """

    files: tuple[str, ...]
    build: Callable[[Path, Roles, TokenizerSettings], Tokenizer]
    roles: Roles
    start: str = "cls_token"
    end: str = "sep_token"
    doubled_end: bool = False
    second_type: int = 0
    trims: bool = False
    mask_takes_space: bool = True
    never_text: tuple[str, ...] = ()

    def frame(
        self, roles: Roles, ids: dict[str, int], settings: TokenizerSettings
    ) -> processors.PostProcessor:
        """What puts the special tokens around a text or a pair of texts.

        Args:
            roles: the special tokens.
            ids: the vocabulary.
            settings: the directory's.
        """
        start, end = roles[self.start], roles[self.end]
        if self.trims:
            return processors.RobertaProcessing(
                (end, ids[end]),
                (start, ids[start]),
                trim_offsets=settings.flag("trim_offsets", default=True) is True,
                add_prefix_space=settings.flag("add_prefix_space", default=False) is True,
            )
        second = self.second_type
        between = [end, end] if self.doubled_end else [end]
        return processors.TemplateProcessing(
            single=[start, "$A", end],
            pair=[start, "$A", *between, f"$B:{second}", f"{end}:{second}"],
            special_tokens=[(text, ids[text]) for text in dict.fromkeys((start, end))],
        )


_BERT_ROLES: Roles = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "mask_token": "[MASK]",
}
_ROBERTA_ROLES: Roles = {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_BERT = Layout(
    files=("vocab.txt",),
    build=build_word_pieces,
    roles=_BERT_ROLES,
    second_type=1,
    mask_takes_space=False,
)
_XLM_ROBERTA = Layout(
    files=("sentencepiece.bpe.model",),
    build=build_xlm_roberta,
    roles=_ROBERTA_ROLES,
    doubled_end=True,
)
LAYOUTS: dict[str, Layout] = {
    "BertTokenizer": _BERT,
    "DistilBertTokenizer": _BERT,
    "ElectraTokenizer": _BERT,
    "MPNetTokenizer": Layout(
        files=("vocab.txt",),
        build=build_word_pieces,
        roles=_ROBERTA_ROLES | {"unk_token": "[UNK]"},
        trims=True,
    ),
    "RobertaTokenizer": Layout(
        files=("vocab.json", "merges.txt"),
        build=build_byte_pairs,
        roles=_ROBERTA_ROLES,
        trims=True,
    ),
    "XLMRobertaTokenizer": _XLM_ROBERTA,
    "CamembertTokenizer": replace(
        _XLM_ROBERTA,
        build=build_camembert,
        never_text=("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"),
    ),
    "AlbertTokenizer": Layout(
        files=("spiece.model",),
        build=build_albert,
        roles=_BERT_ROLES | {"unk_token": "<unk>", "pad_token": "<pad>"},
        second_type=1,
    ),
    "EsmTokenizer": Layout(
        files=("vocab.txt",),
        build=build_amino_acids,
        roles={
            "cls_token": "<cls>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
        },
        end="eos_token",
        mask_takes_space=False,
    ),
}
CLASSES: dict[str, str] = {
    "albert": "AlbertTokenizer",
    "bert": "BertTokenizer",
    "camembert": "CamembertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "electra": "ElectraTokenizer",
    "esm": "EsmTokenizer",
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
}
"""The tokenizer class of a model type, where the directory names none."""

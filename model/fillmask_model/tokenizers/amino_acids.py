"""Conversion of the vocab.txt of ESM's protein models to a tokenizer.

transformers cannot convert ESM's tokenizer class, because the class exists only in Python and
writes no tokenizer.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from fillmask_model.files import read_text

# the white space of Python's str.split, which has more characters than Unicode's white space
_WHITE_SPACE = r"[\s\x1c-\x1f]+"


def build_amino_acids(path: Path, roles: dict[str, str]) -> Tokenizer:
    """Build a tokenizer that splits a sequence into letters.

    White space between letters is optional.

    Args:
        path: vocab.txt with one token per line.
        roles: text of the special tokens by role.

    Raises:
        ValueError: the file is missing or not UTF-8.
    """
    lines = read_text(path).removesuffix("\n").split("\n")
    vocabulary = {line.strip(): token_id for token_id, line in enumerate(lines)}
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


def amino_acid_frame(roles: dict[str, str]) -> dict[str, Any]:
    """Return the post-processor for one or two texts.

    The post-processor contains the text of a token in place of each id.
    """
    start, end = roles["cls_token"], roles["eos_token"]
    processor = processors.TemplateProcessing(
        single=[start, "$A", end],
        pair=[start, "$A", end, "$B", end],
        special_tokens=[(text, 0) for text in dict.fromkeys((start, end))],
    )
    frame: dict[str, Any] = json.loads(processor.__getstate__())
    for text, token in frame["special_tokens"].items():
        token["ids"] = [text]
    return frame

"""Conversion of older vocabulary files to tokenizer.json by transformers.

transformers reads a temporary directory that contains only the vocabulary files and the checked
settings. The conversion therefore runs no code of a checkpoint and needs no network. The import of
transformers takes 1.7 s and 25 MB in addition to torch (measured). The module therefore imports
transformers only for a directory that needs a conversion.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from fillmask_model.files import read_object, read_text
from fillmask_model.tokenizers.amino_acids import amino_acid_frame, build_amino_acids
from fillmask_model.tokenizers.classes import TokenizerClass
from fillmask_model.tokenizers.sentence_pieces import check_sentence_pieces
from fillmask_model.tokenizers.settings import CONFIG_FILE, FLAGS, TokenizerSettings

_AMINO_ACIDS = "EsmTokenizer"  # a Python class, for which transformers writes no tokenizer.json
_OPTIONS = (
    *("do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents"),
    *("add_prefix_space", "trim_offsets"),
)


def convert_vocabulary(directory: Path, kind: TokenizerClass, settings: TokenizerSettings) -> str:
    """Convert the vocabulary files of a directory to the text of a tokenizer.json.

    Raises:
        ValueError: a file is missing or broken.
    """
    for name in kind.files:
        _check_file(directory / name, kind)
    roles = kind.roles | settings.roles
    if kind.name == _AMINO_ACIDS:
        return build_amino_acids(directory / "vocab.txt", roles).to_str()
    tokenizer_class = _transformers_class(kind)
    with tempfile.TemporaryDirectory() as staging:
        for name in kind.files:
            shutil.copyfile(directory / name, Path(staging) / name)
        config = _options(settings) | {
            role: _special_token(role, text, kind, settings) for role, text in roles.items()
        }
        (Path(staging) / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")
        try:
            converted = tokenizer_class.from_pretrained(
                staging, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # noqa: BLE001 - transformers raises any Exception
            raise ValueError(
                f"{directory}: transformers cannot convert {' and '.join(kind.files)} "
                f"({_one_line(error, staging)}); download the files again or save the tokenizer "
                "as tokenizer.json"
            ) from None
    fields = json.loads(converted.backend_tokenizer.to_str())
    _drop_invented_tokens(fields)
    return json.dumps(fields, ensure_ascii=False)


def frame_of_class(
    kind: TokenizerClass, roles: dict[str, str], settings: TokenizerSettings
) -> dict[str, Any]:
    """Return a class's post-processor, which adds special tokens around one or two texts.

    The post-processor contains the text of a token in place of each id, because it comes from a
    tokenizer without a vocabulary.
    """
    if kind.name == _AMINO_ACIDS:
        return amino_acid_frame(roles)
    empty = _transformers_class(kind)(**roles, **_options(settings)).backend_tokenizer
    frame: dict[str, Any] = json.loads(empty.to_str())["post_processor"]
    for end in ("cls", "sep"):
        if end in frame:
            text, token_id = frame[end]
            frame[end] = [text, empty.id_to_token(token_id)]
    for token in frame.get("special_tokens", {}).values():
        token["ids"] = [empty.id_to_token(token_id) for token_id in token["ids"]]
    return frame


def _transformers_class(kind: TokenizerClass) -> Any:
    import transformers  # noqa: PLC0415 - see the module's docstring

    return getattr(transformers, kind.name)


def _options(settings: TokenizerSettings) -> dict[str, bool | None]:
    return {
        name: settings.flag(name, default=None)
        for name in _OPTIONS
        if settings.options.get(name) is not None
    }


def _special_token(
    role: str, text: str, kind: TokenizerClass, settings: TokenizerSettings
) -> str | dict[str, Any]:
    """Return a special token in the form of tokenizer_config.json.

    By default the white space before a mask belongs to the mask, as in pretraining and in the
    published tokenizer.json. For RoBERTa, transformers instead makes the white space a separate
    token.
    """
    token = settings.described.get(text)
    if token is None and role == "mask_token" and kind.mask_takes_space:
        token = AddedToken(text, lstrip=True, normalized=False, special=True)
    if token is None:
        return text
    fields = {"__type": "AddedToken", "content": text}
    return fields | {flag: getattr(token, flag) for flag in FLAGS}


def _check_file(path: Path, kind: TokenizerClass) -> None:
    """Reject broken files that transformers accepts or reports with a misleading error."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist; add it or tokenizer.json")
    if path.suffix == ".model":
        check_sentence_pieces(path, kind)
    elif path.suffix == ".json":
        ids = list(read_object(path).values())
        if not all(type(token_id) is int for token_id in ids) or len(set(ids)) < len(ids):
            raise ValueError(f"{path} must map each token to a unique whole number")
    elif not read_text(path).strip():
        raise ValueError(f"{path} is empty; download it again")


def _drop_invented_tokens(fields: dict[str, Any]) -> None:
    """Remove special tokens that the vocabulary lacks.

    transformers assigns such tokens ids after the end of the vocabulary, for which the embedding
    table has no rows.
    """
    vocabulary = fields["model"]["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece for piece, _ in vocabulary}
    fields["added_tokens"] = [t for t in fields["added_tokens"] if t["content"] in vocabulary]
    fields["post_processor"] = None


def _one_line(error: Exception, staging: str) -> str:
    return " ".join(str(error).replace(f"{staging}/", "").split())[:200].rstrip(".")

"""Loader that combines a checkpoint's tokenizer files into a complete tokenizer.json.

A complete tokenizer.json stays the same byte for byte. An incomplete file receives the settings of
tokenizer_config.json and similar files. In a directory without a tokenizer.json, the loader
converts vocabulary files of known tokenizer classes. The loader executes no code of a checkpoint
and downloads no file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken

from fillmask_model.tokenizers.classes import CLASS_OF_MODEL_TYPE, CLASSES, TokenizerClass
from fillmask_model.tokenizers.completion import TokenizerDraft
from fillmask_model.tokenizers.conversion import convert_vocabulary, frame_of_class
from fillmask_model.tokenizers.probe import check_tokenizer
from fillmask_model.tokenizers.settings import TokenizerSettings

TOKENIZER_FILE = "tokenizer.json"
MASK_TOKENS = ("[MASK]", "<mask>")
VOCABULARY_FILES = sorted({name for kind in CLASSES.values() for name in kind.files})
# generic classes, which read the tokenizer.json of any model type
_GENERIC_CLASSES = {"PreTrainedTokenizer", "PythonBackend", "TokenizersBackend"}


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """Tokenizer of a checkpoint.

    Attributes:
        tokenizer_json: content of a complete tokenizer.json, which marks every special token.
    """

    tokenizer_json: bytes
    mask_token: str


def read_tokenizer_files(directory: Path, model_type: str | None) -> TokenizerFiles | None:
    """Read the tokenizer of a checkpoint.

    Args:
        model_type: model type in config.json, which determines the tokenizer class if no file names
            a class.

    Returns:
        The tokenizer. None if the directory has no tokenizer files.

    Raises:
        ValueError: a file is missing or broken, files contradict each other, or no mask token
            exists. The message names the file.
    """
    settings = TokenizerSettings.read(directory)
    of_model_type = CLASS_OF_MODEL_TYPE.get(model_type or "")
    named = settings.tokenizer_class
    kind = CLASSES.get(named) if named else of_model_type
    if (directory / TOKENIZER_FILE).is_file():
        draft = TokenizerDraft.read(directory / TOKENIZER_FILE)
        if kind:
            draft.apply(settings)
    elif present := [name for name in VOCABULARY_FILES if (directory / name).is_file()]:
        if named in _GENERIC_CLASSES:
            kind = of_model_type
        if not kind:
            raise ValueError(
                f"{directory}: transformers converts {' and '.join(present)} only for "
                f"{', '.join(CLASSES)} (got {named or f'model_type {model_type!r}'}); "
                "save the tokenizer as tokenizer.json"
            )
        text = convert_vocabulary(directory, kind, settings)
        draft = TokenizerDraft(directory / kind.files[0], text)
    else:
        return None
    completed = _complete(draft, settings, kind)
    check_tokenizer(draft.path, completed.tokenizer_json)
    return completed


def _complete(
    draft: TokenizerDraft, settings: TokenizerSettings, kind: TokenizerClass | None
) -> TokenizerFiles:
    """Complete a draft with special tokens and a post-processor."""
    roles = (kind.roles if kind else {}) | settings.roles
    special = {*roles.values(), *(kind.placeholders if kind else ())}

    def token(text: str, *, is_special: bool) -> AddedToken:
        takes_space = kind is not None and kind.mask_takes_space
        lstrip = takes_space and text == roles.get("mask_token")
        plain = AddedToken(text, lstrip=lstrip, normalized=not is_special, special=is_special)
        return settings.described.get(text, plain)

    for text, token_id in sorted(settings.ids.items(), key=lambda item: item[1]):
        draft.add(token(text, is_special=text in special), token_id)
    mask_token = _mask_token(draft, settings, kind)
    for text in sorted({*special, mask_token}):
        draft.mark_special(token(text, is_special=True))
    # skip unknown tokens, because transformers also lists ALBERT's brackets here
    for text in settings.extra_special:
        if text in draft.ids:
            draft.add(token(text, is_special=True), draft.ids[text])
    if kind and not draft.framed:
        draft.special_id(roles["unk_token"])
        draft.frame(frame_of_class(kind, roles, settings))
    return TokenizerFiles(draft.content(), mask_token)


def _mask_token(
    draft: TokenizerDraft, settings: TokenizerSettings, kind: TokenizerClass | None
) -> str:
    """Choose the mask token.

    The order of precedence is a name in a file, the default of the class, and the usual names.
    """
    if named := settings.roles.get("mask_token"):
        if named not in draft.ids:
            raise ValueError(
                f"{draft.path} must contain {named}, the mask_token of another tokenizer file"
            )
        return named
    usual = kind.roles["mask_token"] if kind else None
    candidates = [text for text in (usual,) if text in draft.ids]
    candidates = candidates or [text for text in MASK_TOKENS if text in draft.special]
    candidates = candidates or [text for text in MASK_TOKENS if text in draft.ids]
    if not candidates:
        raise ValueError(f"{draft.path} has no mask token; add {' or '.join(MASK_TOKENS)}")
    if len(candidates) > 1:
        raise ValueError(
            f"{draft.path} must have one mask token (got {' and '.join(MASK_TOKENS)}); set "
            "mask_token in tokenizer_config.json"
        )
    return candidates[0]

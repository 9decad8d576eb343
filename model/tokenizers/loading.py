"""A directory's tokenizer as one complete tokenizer.json, from whichever files it has.

A complete tokenizer.json is returned byte for byte. Settings of tokenizer_config.json and similar
files are merged into an incomplete one. Without a tokenizer.json, the vocabulary files of the known
tokenizer classes are converted. Nothing in a directory is executed, and nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken

from model.tokenizers.classes import CLASS_OF_MODEL_TYPE, CLASSES, TokenizerClass
from model.tokenizers.completion import TokenizerDraft
from model.tokenizers.conversion import convert_vocabulary, frame_of_class
from model.tokenizers.settings import TokenizerSettings

TOKENIZER_FILE = "tokenizer.json"
MASK_TOKENS = ("[MASK]", "<mask>")
_VOCABULARY_FILES = sorted({name for kind in CLASSES.values() for name in kind.files})
# classes that do what tokenizer.json says, whatever the model
_GENERIC_CLASSES = {"PreTrainedTokenizer", "PythonBackend", "TokenizersBackend"}


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """The tokenizer of a checkpoint.

    Attributes:
        tokenizer_json: a complete tokenizer.json; every special token is marked as one.
        mask_token: the text that marks a mask.
    """

    tokenizer_json: bytes
    mask_token: str


def read_tokenizer_files(directory: Path, model_type: str | None) -> TokenizerFiles | None:
    """Read the tokenizer of a checkpoint.

    Args:
        directory: the checkpoint.
        model_type: of its config.json. It determines the tokenizer class where the directory does
            not name one.

    Returns:
        The tokenizer; None where the directory has no file of one.

    Raises:
        ValueError: a file is missing or broken, files do not fit each other, or there is no mask
            token; one sentence that names the file.
    """
    settings = TokenizerSettings.read(directory)
    of_model_type = CLASS_OF_MODEL_TYPE.get(model_type or "")
    named = settings.tokenizer_class
    kind = CLASSES.get(named) if named else of_model_type
    if (directory / TOKENIZER_FILE).is_file():
        draft = TokenizerDraft.read(directory / TOKENIZER_FILE)
        if kind:
            draft.apply(settings)
    elif present := [name for name in _VOCABULARY_FILES if (directory / name).is_file()]:
        if named in _GENERIC_CLASSES:
            kind = of_model_type
        if not kind:
            raise ValueError(
                f"{directory} has {' and '.join(present)} but no tokenizer.json, and "
                f"{named or f'model_type {model_type!r}'} is not one of the classes that can be "
                f"converted ({', '.join(CLASSES)}); save the tokenizer as tokenizer.json"
            )
        text = convert_vocabulary(directory, kind, settings)
        draft = TokenizerDraft(directory / kind.files[0], text)
    else:
        return None
    return _complete(draft, settings, kind)


def _complete(
    draft: TokenizerDraft, settings: TokenizerSettings, kind: TokenizerClass | None
) -> TokenizerFiles:
    """Mark the special tokens, and add the class's frame to a tokenizer that has none."""
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
    for text in settings.extra_special:  # transformers lists ALBERT's brackets there: no force
        if text in draft.ids:
            draft.add(token(text, is_special=True), draft.ids[text])
    if kind and not draft.framed:
        draft.special_id(roles["unk_token"])
        draft.frame(frame_of_class(kind, roles, settings))
    return TokenizerFiles(draft.content(), mask_token)


def _mask_token(
    draft: TokenizerDraft, settings: TokenizerSettings, kind: TokenizerClass | None
) -> str:
    """Return the mask that a file names, or that of the class, or one by its usual name."""
    if named := settings.roles.get("mask_token"):
        if named not in draft.ids:
            raise ValueError(
                f"{draft.path} lacks the mask token {named}, which a file beside it names"
            )
        return named
    usual = kind.roles["mask_token"] if kind else None
    candidates = [text for text in (usual,) if text in draft.ids]
    candidates = candidates or [text for text in MASK_TOKENS if text in draft.special]
    candidates = candidates or [text for text in MASK_TOKENS if text in draft.ids]
    if not candidates:
        raise ValueError(
            f"{draft.path} has no mask token: {' and '.join(MASK_TOKENS)} are not in it"
        )
    if len(candidates) > 1:
        raise ValueError(
            f"{draft.path} has both {' and '.join(MASK_TOKENS)}; name one of them as mask_token in "
            "tokenizer_config.json"
        )
    return candidates[0]

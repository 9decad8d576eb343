"""A directory's tokenizer as one complete tokenizer.json, whichever files it lies there in.

A tokenizer.json is taken as it is, but for what the small files beside it add or say otherwise.
Without one, the vocabulary files of the known tokenizer classes are converted. Nothing in a
directory is executed: a class that it brings along is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken

from model.tokenizers.classes import CLASSES, LAYOUTS, Layout
from model.tokenizers.completion import TokenizerDraft
from model.tokenizers.settings import TokenizerSettings

TOKENIZER_FILE = "tokenizer.json"
MASK_TOKENS = ("[MASK]", "<mask>")
_VOCABULARY_FILES = sorted({name for layout in LAYOUTS.values() for name in layout.files})
# classes that do what tokenizer.json says, whatever the model
_GENERIC_CLASSES = {"PreTrainedTokenizer", "PythonBackend", "TokenizersBackend"}


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """What was read.

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
        model_type: of its config.json. It says what the files are for where the directory does not
            name a tokenizer class.

    Returns:
        The tokenizer; None where the directory has no file of one.

    Raises:
        ValueError: a file is missing or broken, files do not fit each other, or there is no mask
            token; one sentence that names the file.
    """
    settings = TokenizerSettings.read(directory)
    layout = _layout(settings, model_type)
    if (directory / TOKENIZER_FILE).is_file():
        draft = TokenizerDraft.read(directory / TOKENIZER_FILE)
        if layout:
            draft.apply(settings)
    elif present := [name for name in _VOCABULARY_FILES if (directory / name).is_file()]:
        if settings.tokenizer_class in _GENERIC_CLASSES:
            layout = LAYOUTS.get(CLASSES.get(model_type or "", ""))
        if not layout:
            raise ValueError(
                f"{directory} has {' and '.join(present)} but no tokenizer.json, and how to read "
                f"them is known for {', '.join(LAYOUTS)}, not for "
                f"{settings.tokenizer_class or f'model_type {model_type!r}'}"
            )
        draft = _converted(directory, settings, layout)
    else:
        return None
    return _completed(draft, settings, layout)


def _layout(settings: TokenizerSettings, model_type: str | None) -> Layout | None:
    name = settings.tokenizer_class or CLASSES.get(model_type or "", "")
    return LAYOUTS.get(name)


def _converted(directory: Path, settings: TokenizerSettings, layout: Layout) -> TokenizerDraft:
    if missing := [name for name in layout.files if not (directory / name).is_file()]:
        raise ValueError(f"{directory / missing[0]} does not exist, and tokenizer.json neither")
    path = directory / layout.files[0]
    try:
        tokenizer = layout.build(directory, layout.roles | settings.roles, settings)
    except ValueError:
        raise
    except Exception as error:  # noqa: BLE001 - tokenizers raises nothing narrower
        raise ValueError(f"{path} cannot be made a tokenizer: {error}") from None
    return TokenizerDraft(path, tokenizer.to_str())


def _completed(
    draft: TokenizerDraft, settings: TokenizerSettings, layout: Layout | None
) -> TokenizerFiles:
    """Mark the special tokens, and frame texts where nothing does."""
    roles = (layout.roles if layout else {}) | settings.roles
    special = {*roles.values(), *(layout.never_text if layout else ())}

    def token(text: str, *, is_special: bool) -> AddedToken:
        takes_space = layout is not None and layout.mask_takes_space
        lstrip = takes_space and text == roles.get("mask_token")
        plain = AddedToken(text, lstrip=lstrip, normalized=not is_special, special=is_special)
        return settings.described.get(text, plain)

    for text, token_id in sorted(settings.ids.items(), key=lambda item: item[1]):
        draft.add(token(text, is_special=text in special), token_id)
    mask_token = _mask_token(draft, settings, layout)
    for text in sorted({*special, mask_token}):
        draft.mark_special(token(text, is_special=True))
    for text in settings.extra_special:  # transformers lists ALBERT's brackets there: no force
        if text in draft.ids:
            draft.add(token(text, is_special=True), draft.ids[text])
    if layout and not draft.framed:
        frame = [roles[layout.start], roles[layout.end]]
        if lacking := [text for text in [*frame, roles["unk_token"]] if text not in draft.ids]:
            raise ValueError(f"{draft.path} lacks the special token {lacking[0]}")
        draft.frame(layout.frame(roles, draft.ids, settings))
    return TokenizerFiles(draft.content(), mask_token)


def _mask_token(draft: TokenizerDraft, settings: TokenizerSettings, layout: Layout | None) -> str:
    """The mask: as a file names it, as the class has it, or as it is commonly called."""
    if named := settings.roles.get("mask_token"):
        if named not in draft.ids:
            raise ValueError(
                f"{draft.path} lacks the mask token {named}, which a file beside it names"
            )
        return named
    usual = layout.roles["mask_token"] if layout else None
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

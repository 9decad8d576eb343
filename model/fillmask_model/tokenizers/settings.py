"""Settings of a tokenizer in `tokenizer_config.json` and two older files.

The older files are `special_tokens_map.json` and `added_tokens.json`. The reader uses them only if
`tokenizer_config.json` has no `added_tokens_decoder`. The reader never loads a tokenizer class from
the directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from fillmask_model.files import read_object

CONFIG_FILE = "tokenizer_config.json"
SPECIAL_TOKENS_FILE = "special_tokens_map.json"
ADDED_TOKENS_FILE = "added_tokens.json"
ROLES = (
    *("cls_token", "sep_token", "bos_token", "eos_token"),
    *("unk_token", "pad_token", "mask_token"),
)
_EXTRA_KEYS = ("additional_special_tokens", "extra_special_tokens")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True, slots=True)
class TokenizerSettings:
    """Tokenizer settings of a directory.

    A directory without the files has empty settings.

    Attributes:
        path: file to name in error messages.
        tokenizer_class: name of the class in transformers without the suffix "Fast". None if no
            file names a class.
        options: fields of tokenizer_config.json.
        roles: text of the special tokens by role, such as {"mask_token": "<mask>"}.
        extra_special: text of other special tokens.
        described: tokens with their flags for matching, by text.
        ids: ids of tokens that the vocabulary may lack, by text.
    """

    path: Path
    tokenizer_class: str | None
    options: dict[str, Any]
    roles: dict[str, str]
    extra_special: tuple[str, ...]
    described: dict[str, AddedToken]
    ids: dict[str, int]

    @classmethod
    def read(cls, directory: Path) -> TokenizerSettings:
        """Read the settings of a directory.

        Raises:
            ValueError: a file is broken, or a field has a value of the wrong type.
        """
        path = directory / CONFIG_FILE
        options = _optional_object(path)
        described: dict[str, AddedToken] = {}
        ids: dict[str, int] = {}
        named = options
        if "added_tokens_decoder" in options:
            for token_id, token in _items(options["added_tokens_decoder"], path):
                text = _text(token, described, path)
                ids[text] = _integer(token_id, path)
        else:
            named = options | _optional_object(directory / SPECIAL_TOKENS_FILE)
            for text, token_id in _optional_object(directory / ADDED_TOKENS_FILE).items():
                ids[text] = _integer(token_id, directory / ADDED_TOKENS_FILE)
        roles = {role: _text(named[role], described, path) for role in ROLES if named.get(role)}
        extra = [named[key] for key in _EXTRA_KEYS if named.get(key)]
        special = [_text(token, described, path) for group in extra for token in _values(group)]
        name = options.get("tokenizer_class") or _optional_object(directory / "config.json").get(
            "tokenizer_class"
        )
        return cls(
            path=path,
            tokenizer_class=str(name).removesuffix("Fast") if name else None,
            options=options,
            roles=roles,
            extra_special=tuple(special),
            described=described,
            ids=ids,
        )

    def flag(self, name: str, *, default: bool | None) -> bool | None:
        """Return a Boolean setting.

        The default replaces a missing setting or null.

        Raises:
            ValueError: the setting has another type.
        """
        value = self.options.get(name, default)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        raise ValueError(f"{self.path}: {name} must be true or false (got {value!r})")


def _optional_object(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _text(token: object, described: dict[str, AddedToken], path: Path) -> str:
    """Return the text of a token that is a string or an object.

    The function adds the flags of an object to `described`.
    """
    if isinstance(token, str):
        return token
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise ValueError(  # noqa: TRY004 - an invalid file is a ValueError
            f"{path} or an older tokenizer file: a token must be a string, or an object with "
            f"content (got {token!r})"
        )
    flags = {name: token[name] is True for name in FLAGS if name in token}
    described[token["content"]] = AddedToken(token["content"], **flags)
    return str(token["content"])


def _items(value: object, path: Path) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: added_tokens_decoder must be an object (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
    return value.items()


def _values(group: object) -> Iterable[Any]:
    if isinstance(group, dict):
        return group.values()
    return group if isinstance(group, list) else [group]


def _integer(value: object, path: Path) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ValueError(
            f"{path}: the id of a token must be a whole number (got {value!r})"
        ) from None

"""Settings in the small files beside a vocabulary.

They are `tokenizer_config.json` and, where that lists no `added_tokens_decoder`, the older
`special_tokens_map.json` and `added_tokens.json`. A class that they name is never loaded from the
directory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from model.files import read_object

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
    """The settings of one directory; all empty if it has none of the files.

    Attributes:
        path: the file that errors name.
        tokenizer_class: the name in transformers, without "Fast"; None if no file names one.
        options: the fields of tokenizer_config.json.
        roles: the text of the special tokens by role, as in {"mask_token": "<mask>"}.
        extra_special: the text of other special tokens.
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
        """Read the files.

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
        """Return a setting that is true or false, or its default if it is null or missing.

        Raises:
            ValueError: the setting is something else.
        """
        value = self.options.get(name, default)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        raise ValueError(f"{self.path}: {name} must be true or false, not {value!r}")


def _optional_object(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}


def _text(token: object, described: dict[str, AddedToken], path: Path) -> str:
    """Return the text of a token written as a string or as an object; note the latter's flags."""
    if isinstance(token, str):
        return token
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise ValueError(  # noqa: TRY004 - the file's value is wrong
            f"{path} or a file beside it: a token must be a text or an object, not {token!r}"
        )
    flags = {name: token[name] is True for name in FLAGS if name in token}
    described[token["content"]] = AddedToken(token["content"], **flags)
    return str(token["content"])


def _items(value: object, path: Path) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: added_tokens_decoder must be an object, not {value!r}")  # noqa: TRY004 - the file's value is wrong
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
            f"{path}: the id of a token must be a whole number, not {value!r}"
        ) from None

"""Flags and help of fillmask-serve, with one flag per setting."""

import argparse
import difflib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from fillmask import __version__
from fillmask.errors import SettingsError, quote

# title of a group -> name of a setting -> field of the setting
Groups = Mapping[str, Mapping[str, FieldInfo]]

# units at the end of the names of whole numbers
_UNITS = ("port", "ms", "s", "bytes")
_MAX_FLAG_COLUMNS = 30  # a longer flag has its help on the next line


def read_flags(arguments: Sequence[str], groups: Groups, epilog: str) -> dict[str, Any]:
    """Return the values of the flags by the names of their settings.

    Args:
        groups: all settings, in the order of the help.
        epilog: last sentence of the help.

    Raises:
        SettingsError: a flag is unknown or has no value.
        SystemExit: the flags contain --help or --version.
    """
    parser = _Parser(
        prog="fillmask-serve",
        usage="%(prog)s [FLAG VALUE]...",
        description="Serve a masked language model over HTTP.",
        epilog=epilog,
        formatter_class=partial(argparse.HelpFormatter, max_help_position=_MAX_FLAG_COLUMNS),
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"fillmask {__version__}")
    for title, fields in groups.items():
        group = parser.add_argument_group(title.lower())
        for name, field in fields.items():
            group.add_argument(flag(name), metavar=metavar(name, field), help=help_text(field))
    flags, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = [flag(name) for fields in groups.values() for name in fields]
        raise SettingsError(
            f"Unknown argument {quote(unknown[0])}; remove it or use {nearest(unknown[0], known)}."
        )
    return vars(flags)


def flag(name: str) -> str:
    """Return the flag of a setting."""
    return "--" + name.replace("_", "-")


def metavar(name: str, field: FieldInfo) -> str:
    """Return the choices or the kind of a setting's value, for the help."""
    unit = name.rpartition("_")[2]
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    if field.annotation is bool:
        return "true|false"
    if field.annotation is Path:
        return "DIR"
    if field.annotation is int and unit not in _UNITS:
        return "N"
    return unit.upper()


def help_text(field: FieldInfo) -> str:
    """Return the description and the default of a setting, for argparse."""
    default = default_text(field)
    text = f"{field.description} (default {default})" if default else str(field.description)
    return text.replace("%", "%%")


def default_text(field: FieldInfo) -> str:
    """Return the default of a setting, or an empty string if its description has the default."""
    if field.default in {None, "", PydanticUndefined}:
        return ""
    return str(field.default).lower() if field.annotation is bool else str(field.default)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the known name that is most similar to an unknown name."""
    return difflib.get_close_matches(name, known, n=1, cutoff=0)[0]


class _Parser(argparse.ArgumentParser):
    """Argument parser that raises a SettingsError for invalid arguments."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; run {self.prog} --help for the flags.")

"""The command's arguments: one text, or a file in and a file out."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

from service import __version__
from service.cli.errors import CommandError, reason
from service.cli.formats.base import is_text
from service.cli.problems import OnError
from service.cli.row_options import (
    DEFAULT_FIELD,
    FileTask,
    RowOptions,
    Shard,
    StreamTask,
    Task,
    TextTask,
)
from service.settings import Settings
from service.tasks.options import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    MAX_WORD_TOKENS,
    Granularity,
    OnLongText,
    Order,
    Strategy,
)

STANDARD_STREAM = "-"
# of the settings, those that mean something without a server
_SETTINGS = ("bundle", "threads", "max_batch_tokens")
# Each with what may be said, and what it means. None is checked here: that is done as over HTTP, so
# that what is wrong is told in the same words.
_PARAMETERS: dict[str, tuple[tuple[str, ...], str]] = {
    "top_k": ((), f"most fills a mask: {DEFAULT_TOP_K} by default, or all targets"),
    "granularity": (get_args(Granularity), "tokens, or whole words, of several tokens too"),
    "max_word_tokens": (
        (),
        f"most tokens of a word: {DEFAULT_WORD_TOKENS} by default, up to {MAX_WORD_TOKENS}",
    ),
    "strategy": (get_args(Strategy), "each mask alone, or all masks of a text together"),
    "order": (
        get_args(Order),
        "in which masks are filled together: the most certain first, or from the left",
    ),
    "on_long_text": (
        get_args(OnLongText),
        "what becomes of texts that are longer than the model reads",
    ),
}
_EPILOG = """\
fillmask "Paris is the [MASK] of France."
fillmask --input texts.jsonl --output fills.jsonl --top-k 3

Files end in .jsonl, .ndjson, .csv or .parquet, and .txt may be read. Started again, the same
command goes on where it was stopped. FILLMASK_BUNDLE, FILLMASK_THREADS and
FILLMASK_MAX_BATCH_TOKENS do what --bundle, --threads and --max-batch-tokens do; the other
variables are the server's.
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was typed.

    Attributes:
        task: what is to be done.
        settings: flags of the settings.
    """

    task: Task
    settings: tuple[str, ...]


def read_arguments(arguments: Sequence[str]) -> Arguments:
    """Read what was typed.

    Raises:
        CommandError: it is not understood, or goes together badly.
        SystemExit: after --help or --version.
    """
    given = vars(_parser().parse_args(arguments))
    settings = tuple(f"{_flag(name)}={given.pop(name)}" for name in _SETTINGS if name in given)
    parameters = _parameters(given)
    text = given.pop("text", None)
    as_json = given.pop("json", False)
    if text is not None:
        if given:
            raise CommandError(f"{_flag(next(iter(given)))} is for files, and there is a text.")
        return Arguments(TextTask(text, parameters, as_json), settings)
    if not given:
        raise CommandError("There is nothing to fill: name a text, or --input and --output.")
    if as_json:
        raise CommandError("--json is for a text; what a file becomes is named by --output.")
    return Arguments(_rows_task(given, parameters), settings)


def _rows_task(given: dict[str, Any], parameters: dict[str, Any]) -> FileTask | StreamTask:
    for name in ("input", "output"):
        if name not in given:
            raise CommandError(f"--{name} is missing; files need --input and --output.")
    source, target = given.pop("input"), given.pop("output")
    to_files = {name: given.pop(name) for name in ("overwrite", "restart") if name in given}
    if source == STANDARD_STREAM and target != STANDARD_STREAM:
        raise CommandError("What comes by --input - goes by --output -, both as JSONL.")
    if source == STANDARD_STREAM and "shard" in given:
        raise CommandError("--shard needs a file: nobody knows how many rows --input - has.")
    if target == STANDARD_STREAM and to_files:
        raise CommandError(f"{_flag(next(iter(to_files)))} is for files, and --output - is none.")
    if "shard" in given:
        given["shard"] = Shard.parse(given["shard"])
    filling = RowOptions(parameters, **given)
    if target == STANDARD_STREAM:
        return StreamTask(None if source == STANDARD_STREAM else Path(source), filling)
    return FileTask(Path(source), Path(target), filling, **to_files)


def _parameters(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters among what was given, as they would come over HTTP; taken out of it."""
    parameters = {name: given.pop(name) for name in _PARAMETERS if name in given}
    for name, (choices, _) in _PARAMETERS.items():
        if name in parameters and not choices and parameters[name].isdecimal():
            parameters[name] = int(parameters[name][:20])  # more digits are too much as well
    targets = given.pop("target", [])
    if any(not is_text(target) for target in targets):
        raise CommandError("--target: a word is not valid UTF-8.")
    for path in given.pop("targets", []):
        targets += _lines_of(path)
    return {**parameters, "targets": targets} if targets else parameters


def _lines_of(path: Path) -> list[str]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f"--targets: {path} cannot be read: {reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"--targets: {path} is not valid UTF-8.") from error
    if not content:
        raise CommandError(f"--targets: {path} is empty.")
    return content.removesuffix("\n").split("\n")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; {self.prog} --help lists the arguments.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fillmask",
        description="Fill the masks of a text, or of all texts of a file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("text", nargs="?", metavar="TEXT", help="a text with at least one mask")
    parser.add_argument("--version", action="version", version=f"fillmask {__version__}")
    parser.add_argument("--json", action="store_true", help="print what POST /fill-mask answers")

    filling = parser.add_argument_group("how masks are filled")
    for name, (choices, meaning) in _PARAMETERS.items():
        default = f" (default {choices[0]})" if choices else ""
        filling.add_argument(
            _flag(name), metavar="|".join(choices) or "N", help=f"{meaning}{default}"
        )
    filling.add_argument(
        "--target", action="append", metavar="WORD", help="rank only this and other targets"
    )
    filling.add_argument(
        "--targets", action="append", type=Path, metavar="FILE", help="the same, one a line"
    )

    files = parser.add_argument_group("files")
    files.add_argument("--input", metavar="FILE", help="what to fill; - for standard input")
    files.add_argument("--output", metavar="FILE", help="what to write; - for standard output")
    files.add_argument(
        "--field", metavar="NAME", help=f"field or column with the texts (default {DEFAULT_FIELD})"
    )
    files.add_argument(
        "--on-error",
        choices=get_args(OnError),
        metavar="error|report",
        help="a row that cannot be filled ends the command, or has a field error and no fills "
        "(default error)",
    )
    files.add_argument("--shard", metavar="I/N", help="do the I-th of N parts, I from 0")
    files.add_argument("--overwrite", action="store_true", help="replace FILE if it is there")
    files.add_argument(
        "--restart", action="store_true", help="throw away what an earlier run has done"
    )

    model = parser.add_argument_group("the model")
    for name in _SETTINGS:
        description = str(Settings.model_fields[name].description)
        model.add_argument(
            _flag(name), metavar="DIRECTORY" if name == "bundle" else "N", help=description
        )
    return parser

"""Command-line arguments of fillmask."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, get_args

from fillmask import __version__
from fillmask.cli.commands import (
    DEFAULT_FIELD,
    DEFAULT_PAIR_FIELD,
    Command,
    OnError,
    RowsCommand,
    Shard,
    TextCommand,
)
from fillmask.cli.errors import CommandError, reason
from fillmask.cli.flags import Parameter, parameter_flags
from fillmask.cli.formats.base import is_encodable
from fillmask.cli.formats.by_extension import COMPRESSED, READ, WRITTEN
from fillmask.cli.tasks import DEFAULT_TASK
from fillmask.errors import quote
from fillmask.settings import Settings
from fillmask.settings.settings import help_text, metavar
from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask.tables.streams import COMPRESSIONS
from fillmask.tasks.task import TASKS

# settings that the command accepts as flags
_SETTINGS = ("bundle", "threads", "max_batch_tokens")
_EPILOG = f"""\
fillmask "Paris is the [MASK] of France."
echo "She drank a cup of [MASK]." | fillmask --top-k 3
fillmask --input texts.jsonl --output fills.jsonl --top-k 3
fillmask --task score "Paris is the capital of France."
fillmask --task classify --input texts.csv --output labels.csv --bundle path/to/bundle

Names of output files end in {", ".join(WRITTEN)}.
Names of input files end in {", ".join(READ)}.
After {", ".join(COMPRESSED)}, they may have {", ".join(COMPRESSIONS)}; outputs, .gz.
Run an interrupted command again to continue it.
FILLMASK_BUNDLE, FILLMASK_THREADS and FILLMASK_MAX_BATCH_TOKENS set --bundle, --threads and
--max-batch-tokens. The other FILLMASK_ variables are settings of the server.
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Parsed command line."""

    command: Command
    settings: tuple[str, ...]  # flags of the settings, as `--name=value`


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        CommandError: an argument is unknown, invalid or missing, or two arguments conflict.
        SystemExit: an argument is --help or --version.
    """
    flags = parameter_flags()
    given = vars(_parser(flags).parse_args(arguments))
    settings = tuple(f"{_flag(name)}={given.pop(name)}" for name in _SETTINGS if name in given)
    parameters = _parameters(given, flags)
    task = given.get("task", DEFAULT_TASK)
    _check_parameters(task, parameters)
    text, text_pair = given.pop("text", None), given.pop("text_pair", None)
    as_json = given.pop("json", False)
    of_files = [name for name in given if name != "task"]
    if text is None and of_files:
        if text_pair is not None:
            raise CommandError("--text-pair needs a text; for files, use --text-pair-column.")
        if as_json:
            raise CommandError("--json needs a text; for files, remove --json.")
        return Arguments(_rows_command(given, parameters), settings)
    if of_files:
        raise CommandError(
            f"{_flag(of_files[0])} and a text exclude each other; remove one of them."
        )
    return Arguments(TextCommand(text, parameters, as_json, task, text_pair), settings)


def _rows_command(given: dict[str, Any], parameters: dict[str, Any]) -> RowsCommand:
    for name in ("input", "output"):
        if name not in given:
            raise CommandError(f"--{name} is missing; give both --input and --output.")
    source, target = given["input"], given["output"]
    to_files = [name for name in ("overwrite", "restart") if name in given]
    if source is None and target is not None:
        raise CommandError(
            f"--input - needs --output - (got --output {target}); set --output to -."
        )
    if source is None and "shard" in given:
        raise CommandError(
            "--shard needs an input file, because the length of standard input is unknown "
            "(got --input -)."
        )
    if target is None and to_files:
        raise CommandError(f"{_flag(to_files[0])} needs an output file (got --output -).")
    dialect = Dialect(*(given.pop(one.name, None) for one in fields(Dialect)))
    if source is None and dialect != DEFAULT:
        raise CommandError("Standard input is JSONL in UTF-8; remove the options of other files.")
    return RowsCommand(parameters=parameters, dialect=dialect, **given)


def _parameters(given: dict[str, Any], flags: Mapping[str, Parameter]) -> dict[str, Any]:
    """Remove the request parameters from the arguments and return them as JSON values."""
    parameters = {name: one.read(given.pop(name)) for name, one in flags.items() if name in given}
    targets = given.pop("target", [])
    texts = [("--target", target) for target in targets]
    prefixes = [("--output-prefix", given.get("output_prefix", ""))]
    prefixes += [("--prefix", str(parameters.get("prefix", "")))]
    for flag, text in [*texts, *prefixes]:
        if not is_encodable(text):
            raise CommandError(f"{flag} {quote(text)} is not valid UTF-8; encode it as UTF-8.")
    for path in given.pop("targets", []):
        targets += _read_lines(path)
    return {**parameters, "targets": targets} if targets else parameters


def _check_parameters(task: str, parameters: Mapping[str, Any]) -> None:
    """Reject the parameters of other tasks."""
    allowed = TASKS[task].parameters.model_fields
    for name in parameters:
        if name not in allowed:
            flags = ", ".join(map(_flag, allowed))
            raise CommandError(
                f"{_flag(name)} is not a parameter of --task {task}; use a parameter of this task: "
                f"{flags}."
            )


def _read_lines(path: Path) -> list[str]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(
            f"--targets: the command cannot read {path} ({reason(error)}); give a readable file."
        ) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"--targets: {path} is not valid UTF-8; encode it as UTF-8.") from error
    if not content:
        raise CommandError(f"--targets: {path} is empty; write one target per line.")
    return content.removesuffix("\n").split("\n")


def _file(argument: str) -> Path | None:
    """Return the path of a file, or None for a standard stream."""
    return None if argument == "-" else Path(argument)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class _Parser(argparse.ArgumentParser):
    """Parser that raises CommandError instead of printing its usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; run {self.prog} --help for the arguments.")


def _parser(flags: Mapping[str, Parameter]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fillmask",
        description="Fill, score or classify a text, or all texts in a file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "text",
        nargs="?",
        metavar="TEXT",
        help="a text, with at least one mask for fill-mask (by default, lines of standard input)",
    )
    parser.add_argument(
        "--task",
        choices=tuple(TASKS),
        metavar="|".join(TASKS),
        help=f"task to run (default {DEFAULT_TASK})",
    )
    parser.add_argument("--text-pair", metavar="TEXT", help="second text of a pair")
    parser.add_argument("--version", action="version", version=f"fillmask {__version__}")
    parser.add_argument(
        "--json", action="store_true", help="print the JSON response of the HTTP API"
    )
    _add_parameters(parser.add_argument_group("parameters of the tasks"), flags)
    _add_files(parser.add_argument_group("files"))
    model = parser.add_argument_group("model")
    for name in _SETTINGS:
        field = Settings.model_fields[name]
        model.add_argument(_flag(name), metavar=metavar(name, field), help=help_text(field))
    return parser


def _add_parameters(options: argparse._ArgumentGroup, flags: Mapping[str, Parameter]) -> None:
    for name, one in flags.items():
        options.add_argument(_flag(name), metavar=one.metavar, help=one.help)
    options.add_argument(
        "--target",
        action="append",
        metavar="WORD",
        help="rank or score only the given targets (repeatable)",
    )
    one_per_line = "file with one target per line"
    options.add_argument("--targets", action="append", type=Path, metavar="FILE", help=one_per_line)


def _add_files(files: argparse._ArgumentGroup) -> None:
    add = files.add_argument
    add(
        "--input",
        metavar="FILE",
        type=_file,
        help="file, folder or pattern ('part-*.csv') to read, or - for standard input",
    )
    add("--output", metavar="FILE", type=_file, help="file to write, or - for standard output")
    add("--field", metavar="NAME", help=f"field or column of the texts (default {DEFAULT_FIELD})")
    add(
        "--text-pair-column",
        metavar="NAME",
        help="field or column of the second texts (default for classify: "
        f"{DEFAULT_PAIR_FIELD}, in rows with this field)",
    )
    add(
        "--output-prefix",
        metavar="PREFIX",
        help="beginning of the names of added fields (default none, or fillmask_ if the input has "
        "one of these names)",
    )
    add("--shard", metavar="I/N", type=Shard.parse, help="process shard I of N, counted from 0")
    add(
        "--on-error",
        choices=get_args(OnError),
        metavar="error|report",
        help="stop at the first invalid row, or write an error field for it (default error)",
    )
    Dialect.add_options(files)
    add("--overwrite", action="store_true", help="replace an existing output file")
    add("--restart", action="store_true", help="discard the results of an interrupted run")

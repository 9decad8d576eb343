"""Command-line arguments, valid and invalid."""

from pathlib import Path
from typing import Any

import pytest

from fillmask.cli.arguments import parse_arguments
from fillmask.cli.commands import RowsCommand, Shard, TextCommand
from fillmask.cli.errors import CommandError
from fillmask.tables.delimited import Dialect

TEXT = "a [MASK]"
FILES = "--input=x --output=y"
EXCLUDE = "and a text exclude each other; remove one of them."
OTHER_TASK = "is not a parameter of --task classify; use a parameter of this task: --top"
ENCODE = "is not valid UTF-8; encode it as UTF-8."
SHARD = "--shard must be I/N with I from 0 to N - 1, such as 0/8 (got "
SHARDS = ("", "8/8", "1", "0/0", "-1/2", "1/2/3", "\u0661/\u0662", "1/")
SPAN = "--span must be START:END, such as 4:10 (got "


def test_a_text() -> None:
    assert parse_arguments([TEXT]).command == TextCommand(TEXT, {})
    parsed = parse_arguments(
        [
            *(TEXT, "--json", "--top-k", "3", "--granularity=word", "--max-word-tokens", "2"),
            *("--order", "left_to_right", "--on-long-text", "window", "--strategy", "joint"),
            *("--bundle", "b", "--threads=4", "--max-batch-tokens", "64"),
        ]
    )
    parameters = {
        "top_k": 3,
        "granularity": "word",
        "max_word_tokens": 2,
        "strategy": "joint",
        "order": "left_to_right",
        "on_long_text": "window",
    }
    assert parsed.command == TextCommand(TEXT, parameters, as_json=True)
    assert parsed.settings == ("--bundle=b", "--threads=4", "--max-batch-tokens=64")
    assert parse_arguments(["--", "-a [MASK]"]).command == TextCommand("-a [MASK]", {})


def test_without_a_text_the_command_reads_standard_input() -> None:
    parsed = parse_arguments(["--task=classify", "--top-k=1", "--json", "--text-pair=b"])
    assert parsed.command == TextCommand(
        None, {"top_k": 1}, as_json=True, task="classify", text_pair="b"
    )


def test_targets_of_both_kinds(tmp_path: Path) -> None:
    # A file of targets has one target per line. Spaces belong to the target.
    path = tmp_path / "targets.txt"
    path.write_bytes("\ufeffone\r\n two\u2028\nthree".encode())
    parsed = parse_arguments([TEXT, "--target", "a", "--targets", str(path), "--target=b"])
    assert parsed.command == TextCommand(
        TEXT, {"targets": ["a", "b", "one", " two\u2028", "three"]}
    )


def test_a_file() -> None:
    names = ["--input", "a.jsonl", "--output", "b.csv"]
    paths: dict[str, Any] = {"input": Path("a.jsonl"), "output": Path("b.csv")}
    assert parse_arguments(names).command == RowsCommand(**paths, parameters={})
    more = ["--field=t", "--on-error=report", "--shard=1/3", "--overwrite", "--restart"]
    more += ["--delimiter=tab", "--quoting=none", "--encoding=latin1", "--output-prefix=p_"]
    more += ["--task=classify", "--text-pair-column=p", "--top-k=1"]
    assert parse_arguments([*names, *more]).command == RowsCommand(
        **paths,
        parameters={"top_k": 1},
        field="t",
        on_error="report",
        shard=Shard(1, 3),
        task="classify",
        text_pair_column="p",
        dialect=Dialect("\t", "none", "iso8859-1"),
        output_prefix="p_",
        overwrite=True,
        restart=True,
    )
    streams = parse_arguments(["--input=-", "--output=-"]).command
    assert streams == RowsCommand(input=None, output=None, parameters={})


def test_scores_of_a_part() -> None:
    # A prefix stays a text. The bounds of a span are numbers.
    flags = ["--prefix=12", "--part=text_pair", "--span=4:10"]
    parameters = {"prefix": "12", "part": "text_pair", "span": [4, 10]}
    parsed = parse_arguments(["--task=score", "a", *flags])
    assert parsed.command == TextCommand("a", parameters, task="score")


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_shards_partition_the_rows(rows: int, count: int) -> None:
    # The sizes of shards differ by at most one row.
    ranges = [Shard(index, count).range_of(rows) for index in range(count)]
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == rows
    sizes = [stop - start for start, stop in ranges]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (f"{FILES} --text-pair=b", "--text-pair needs a text; for files, use --text-pair-column."),
        ("text --text-pair-column=b", f"--text-pair-column {EXCLUDE}"),
        ("text --task=classify --strategy=joint", f"--strategy {OTHER_TASK}"),
        ("text --task=classify --target=a", f"--targets {OTHER_TASK}"),
        ("text --task=fill", "argument --task: invalid choice: 'fill' (choose from 'fill-mask', "),
        ("text --input x", f"--input {EXCLUDE}"),
        ("--input=x.csv", "--output is missing; give both --input and --output."),
        ("--output=x.csv", "--input is missing; give both --input and --output."),
        (f"{FILES} --json", "--json needs a text; for files, remove --json."),
        (
            "--input=- --output=y.jsonl",
            "--input - needs --output - (got --output y.jsonl); set --output to -.",
        ),
        (
            "--input=- --output=- --shard=0/2",
            "--shard needs an input file, because the length of standard input is unknown (got -",
        ),
        (
            "--input=- --output=- --encoding=cp1252",
            "Standard input is JSONL in UTF-8; remove the options of other files.",
        ),
        (
            f"{FILES} --delimiter=ab",
            'argument --delimiter: must be one character, such as ; or | or tab (got "ab"); run',
        ),
        (
            f"{FILES} --encoding=ebcdic",
            "argument --encoding: must be an encoding of Python, such as cp1252 or utf-16 (got ",
        ),
        ("--input=x --output=- --overwrite", "--overwrite needs an output file (got --output -)."),
        ("text --top 1", "unrecognized arguments: --top 1; run fillmask --help for the argum"),
        (f"{FILES} --on-error=skip", "argument --on-error: invalid choice: 'skip' (choose from "),
        ("text --targets none.txt", "--targets: the command cannot read none.txt (no such file or"),
        ("text --target \udcff", f'--target "\\udcff" {ENCODE}'),
        ("text --task=score --prefix=\udcff", f'--prefix "\\udcff" {ENCODE}'),
        *((f"{FILES} --shard={shard}", SHARD) for shard in SHARDS),
        *((f"text --task=score --span={span}", SPAN) for span in ("4-10", "4", "4:10:12", "-1:3")),
    ],
)
def test_invalid_command_lines(given: str, sentence: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_arguments(given.split())
    assert str(caught.value).startswith(sentence)


def test_invalid_files_of_targets(tmp_path: Path) -> None:
    # The file of targets is empty or not valid UTF-8.
    path = tmp_path / "targets.txt"
    for content, sentence in ((b"", "is empty"), (b"\xff", "is not valid UTF-8")):
        path.write_bytes(content)
        with pytest.raises(CommandError, match=sentence):
            parse_arguments([TEXT, "--targets", str(path)])


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    # The help has the forms and the descriptions of the parameters of all tasks.
    forms = ("--on-long-text error|window|truncate", "--min-weight W", "--span START:END")
    for flag, printed in (("--help", forms), ("--version", ["fillmask 0"])):
        with pytest.raises(SystemExit) as caught:
            parse_arguments([flag])
        assert caught.value.code == 0
        out = capsys.readouterr().out
        assert all(part in out for part in printed)

"""Arguments: what may be typed, and a sentence for everything else."""

from pathlib import Path

import pytest

from service.cli.arguments import read_arguments
from service.cli.errors import CommandError
from service.cli.row_options import FileTask, RowOptions, Shard, StreamTask, TextTask

TEXT = "a [MASK]"


def test_a_text() -> None:
    """With nothing else, and with everything that goes with it."""
    assert read_arguments([TEXT]).task == TextTask(TEXT, {})
    typed = read_arguments(
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
    assert typed.task == TextTask(TEXT, parameters, as_json=True)
    assert typed.settings == ("--bundle=b", "--threads=4", "--max-batch-tokens=64")


def test_a_text_that_looks_like_an_option() -> None:
    """As with every command."""
    assert read_arguments(["--", "-a [MASK]"]).task == TextTask("-a [MASK]", {})


def test_targets_of_both_kinds(tmp_path: Path) -> None:
    """In their order; those of a file one a line, spaces and all."""
    path = tmp_path / "targets.txt"
    path.write_bytes("\ufeffone\r\n two\u2028\nthree".encode())
    typed = read_arguments([TEXT, "--target", "a", "--targets", str(path), "--target=b"])
    assert typed.task == TextTask(TEXT, {"targets": ["a", "b", "one", " two\u2028", "three"]})


def test_values_are_left_to_the_check_of_all_parameters() -> None:
    """So that what is wrong is said in the same words as over HTTP."""
    parameters = {"top_k": "five", "max_word_tokens": "-1", "strategy": "x"}
    typed = ["--top-k=five", "--max-word-tokens=-1", "--strategy=x"]
    assert read_arguments([TEXT, *typed]).task == TextTask(TEXT, parameters)


def test_a_file() -> None:
    """With nothing else, and with everything that goes with it."""
    names = ["--input", "a.jsonl", "--output", "b.csv"]
    assert read_arguments(names).task == FileTask(Path("a.jsonl"), Path("b.csv"), RowOptions({}))
    more = ["--field=t", "--on-error=report", "--shard=1/3", "--overwrite", "--restart"]
    filling = RowOptions({"top_k": 1}, "t", "report", Shard(1, 3))
    expected = FileTask(Path("a.jsonl"), Path("b.csv"), filling, overwrite=True, restart=True)
    assert read_arguments([*names, *more, "--top-k=1"]).task == expected


def test_streams() -> None:
    """From standard input, or from a file; a shard of a file alone."""
    assert read_arguments(["--input=-", "--output=-"]).task == StreamTask(None, RowOptions({}))
    typed = read_arguments(["--input=a.csv", "--output=-", "--shard=0/2"])
    assert typed.task == StreamTask(Path("a.csv"), RowOptions({}, shard=Shard(0, 2)))


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ([], "There is nothing to fill: name a text, or --input and --output."),
        (["--top-k=1"], "There is nothing to fill: name a text, or --input and --output."),
        ([TEXT, "--input", "x"], "--input is for files, and there is a text."),
        ([TEXT, "--on-error=report"], "--on-error is for files, and there is a text."),
        (["--input=x.csv"], "--output is missing; files need --input and --output."),
        (["--output=x.csv"], "--input is missing; files need --input and --output."),
        (["--shard=0/1"], "--input is missing; files need --input and --output."),
        (
            ["--input=x", "--output=y", "--json"],
            "--json is for a text; what a file becomes is named by --output.",
        ),
        (
            ["--input=-", "--output=y.jsonl"],
            "What comes by --input - goes by --output -, both as JSONL.",
        ),
        (
            ["--input=-", "--output=-", "--shard=0/2"],
            "--shard needs a file: nobody knows how many rows --input - has.",
        ),
        (
            ["--input=x", "--output=-", "--overwrite"],
            "--overwrite is for files, and --output - is none.",
        ),
        (
            ["--input=x", "--output=-", "--restart"],
            "--restart is for files, and --output - is none.",
        ),
        (
            ["--input=x", "--output=y", "--shard=2/2"],
            '--shard is "2/2"; allowed is I/N, as in 0/8, with I from 0 to N - 1.',
        ),
        ([TEXT, "--top", "1"], "unrecognized arguments: --top 1; fillmask --help lists the argum"),
        ([TEXT, "b"], "unrecognized arguments: b; fillmask --help lists the arguments."),
        (
            ["--input=x", "--output=y", "--on-error=skip"],
            "argument --on-error: invalid choice: 'skip' (choose from 'error', 'report'); fillmask",
        ),
        ([TEXT, "--targets", "none.txt"], "--targets: none.txt cannot be read: no such file or"),
        ([TEXT, "--target", "\udcff"], "--target: a word is not valid UTF-8."),
    ],
)
def test_what_is_not_understood(typed: list[str], sentence: str) -> None:
    """Nothing is passed over."""
    with pytest.raises(CommandError) as caught:
        read_arguments(typed)
    assert str(caught.value).startswith(sentence)


def test_files_of_targets_that_are_none(tmp_path: Path) -> None:
    """Empty, or not UTF-8."""
    path = tmp_path / "targets.txt"
    for content, sentence in ((b"", "is empty"), (b"\xff", "is not valid UTF-8")):
        path.write_bytes(content)
        with pytest.raises(CommandError, match=sentence):
            read_arguments([TEXT, "--targets", str(path)])


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """They are printed, and that is all."""
    for flag, printed in (("--help", "--on-long-text error|window"), ("--version", "fillmask 0")):
        with pytest.raises(SystemExit) as caught:
            read_arguments([flag])
        assert caught.value.code == 0
        assert printed in capsys.readouterr().out

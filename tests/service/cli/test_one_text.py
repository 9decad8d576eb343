"""Fills of one text, as a table or as the JSON of the HTTP response."""

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest

from fillmask.cli.__main__ import execute
from tests.service.cli.command_line import Done, fillmask
from tests.service.cli.conftest import Pipe
from tests.service.tiny import Tiny


@pytest.mark.parametrize(
    ("text", "flags", "sentence"),
    [
        ("", [], "The text is empty; write at least one word."),
        ("\udcff [MASK]", [], "The text is not valid UTF-8; encode it as UTF-8."),
        ("a dog", [], "The text has no mask; write [MASK] in place of a word."),
        ("[MASK]", ["--top-k=two"], 'top_k must be a whole number from 1 to 39 (got "two").'),
        ("[MASK]", ["--threads=0"], '--threads must be a whole number from 1 to 1024 (got "0").'),
        (
            "[MASK]",
            ["--bundle=none"],
            (
                "The bundle is invalid: none is not a directory; "
                "set bundle to the directory of a bundle."
            ),
        ),
    ],
)
def test_errors_are_one_line(tiny: Tiny, text: str, flags: list[str], sentence: str) -> None:
    # Where the HTTP API has the same error, the messages are equal. The exit code is 2.
    done = fillmask(text, "--bundle", tiny.path, *flags)
    assert (done.code, done.out, done.err) == (2, "", f"{sentence}\n")


def test_a_file_given_as_a_text(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the path of an existing file is taken for one, and never a text that is valid.
    path = tmp_path / "in.csv"
    assert "--input" not in fillmask(path, "--bundle", tiny.path).err
    path.write_text("inputs\na [MASK]\n")
    done = fillmask(path, "--bundle", tiny.path)
    assert (done.code, done.out) == (2, "")
    assert "--input" in done.err
    assert "in.csv" in done.err
    assert "--input" not in fillmask("a" * 5000, "--bundle", tiny.path).err
    monkeypatch.chdir(tmp_path)  # the whole path is a text of too many tokens
    Path("a [MASK]").touch()
    assert fillmask("a [MASK]", "--bundle", tiny.path, "--top-k=1").code == 0


def test_server_limits_do_not_apply(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    # An environment variable with a misspelled setting is still an error.
    monkeypatch.setenv("FILLMASK_MAX_TOP_K", "1")
    monkeypatch.setenv("FILLMASK_MAX_MASKS", "1")
    monkeypatch.setenv("FILLMASK_BUNDLE", str(tiny.path))
    done = fillmask("[MASK] [MASK]", "--top-k=39", "--json")
    assert [len(fills) for fills in json.loads(done.out)] == [39, 39]
    monkeypatch.setenv("FILLMASK_BUNDEL", "x")
    done = fillmask("[MASK]")
    assert done.err == 'Unknown variable "FILLMASK_BUNDEL"; remove it or use FILLMASK_BUNDLE.\n'
    assert done.code == 2


def test_each_line_of_standard_input_is_a_text(tiny: Tiny, pipe: Pipe) -> None:
    texts = ["the [MASK] of", "a [MASK] [MASK]", "[MASK]"]
    content = "\n".join(texts).encode()
    tables = [fillmask(text, "--bundle", tiny.path).out for text in texts]
    assert pipe(content, "--bundle", tiny.path) == Done(0, "\n".join(tables), "")
    answers = [fillmask(text, "--json", "--bundle", tiny.path).out for text in texts]
    assert pipe(content + b"\r\n\n \n", "--bundle", tiny.path, "--json") == Done(
        0, "".join(answers), ""
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a dog\n", "The text has no mask; write [MASK] in place of a word."),
        (
            b"\xff [MASK]\n",
            (
                "The line is not valid UTF-8; encode it as UTF-8, or set --encoding to its "
                "encoding, such as cp1252."
            ),
        ),
        (b"\n[MASK]\n", "The text is empty; write at least one word."),
        (b"a" * 2**24 + b"a\n", "The line is longer than 16777216 bytes; shorten it."),
    ],
    ids=["no mask", "encoding", "empty", "long"],
)
def test_invalid_line_ends_the_command(
    tiny: Tiny, pipe: Pipe, content: bytes, sentence: str
) -> None:
    # The command prints the results of the lines before the invalid line.
    before = fillmask("a [MASK]", "--bundle", tiny.path).out
    expected = Done(2, before, f"standard input, row 2: {sentence}\n")
    assert pipe(b"a [MASK]\n" + content, "--bundle", tiny.path) == expected


def test_closed_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert execute(["a [MASK]"]) == 2
    assert capsys.readouterr().err.startswith("Standard output is closed; redirect it")


def test_no_input_is_an_error(tiny: Tiny, pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    # Standard input is empty, is closed or is a terminal, from which the command does not read.
    for content in (b"", b"\n\n"):
        done = pipe(content, "--bundle", tiny.path)
        assert done == Done(2, "", "Standard input has no text; write one text per line.\n")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    for stream in (None, terminal):
        monkeypatch.setattr("sys.stdin", stream)
        done = fillmask()
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "The command has no input; give a text, pipe texts to the command, or set --input and "
            "--output (fillmask --help has examples).\n"
        )


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize(
    "arguments", [["the [MASK]"], ["the [MASK]", "--json"], ["--input=rows", "--output=-"]]
)
def test_full_disk_error_names_standard_output(
    tiny: Tiny,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    # The exit code is 1, because the same command may succeed next time.
    (tmp_path / "rows.jsonl").write_text('{"inputs": "a [MASK]"}\n')
    given = [argument.replace("rows", str(tmp_path / "rows.jsonl")) for argument in arguments]
    full = FULL.open("w")
    monkeypatch.setattr(sys, "stdout", full)
    code = execute([*given, "--bundle", str(tiny.path)])
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        full.close()
    assert code == 1
    assert "standard output: no space left on device.\n" in capsys.readouterr().err

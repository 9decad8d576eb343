"""Fills of one text, as a table or as the JSON of the HTTP response."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.cli import one_text
from fillmask.cli.__main__ import execute
from tests.service.cli.command_line import Done, fillmask
from tests.service.tiny import Tiny


@pytest.mark.parametrize(
    ("text", "flags", "parameters"),
    [
        ("the [MASK] of", [], {}),
        ("the [MASK] of [MASK]", ["--top-k", 2], {"top_k": 2}),
        ("a [MASK]", ["--target", "dog", "--target=walks"], {"targets": ["dog", "walks"]}),
        (
            "a [MASK]",
            ["--granularity=word", "--max-word-tokens=2"],
            {"granularity": "word", "max_word_tokens": 2},
        ),
        (
            "[MASK] a [MASK]",
            ["--strategy=joint", "--order=left_to_right"],
            {"strategy": "joint", "order": "left_to_right"},
        ),
        ("dog " * 40 + "[MASK]", ["--on-long-text=window"], {"on_long_text": "window"}),
    ],
)
def test_json_equals_the_http_response(
    tiny: Tiny, client: TestClient, text: str, flags: list[Any], parameters: dict[str, Any]
) -> None:
    # The JSON ends with a line feed.
    done = fillmask(text, "--json", "--bundle", tiny.path, *flags)
    answer = client.post("/fill-mask", json={"inputs": text, "parameters": parameters})
    assert answer.status_code == 200
    assert (done.code, done.err) == (0, "")
    assert done.out.encode() == answer.content + b"\n"


def test_a_table_has_the_same_fills(tiny: Tiny) -> None:
    arguments = ("the [MASK] of [MASK]", "--top-k=3", "--bundle", tiny.path)
    table, answer = fillmask(*arguments).out, json.loads(fillmask(*arguments, "--json").out)
    lines = [line for line in table.splitlines() if line and not line.startswith("Mask ")]
    assert len(lines) == 6
    for line, fill in zip(lines, answer[0] + answer[1], strict=True):
        assert line.split()[0] == f"{fill['score']:.4f}"
        assert line.endswith(f"  {fill['sequence']}")
        assert f"  {fill['token_str']} " in line


@pytest.mark.parametrize(
    ("text", "flags", "sentence"),
    [
        ("", [], "The text is empty; write at least one word."),
        ("\udcff [MASK]", [], "The text is not valid UTF-8; encode it as UTF-8."),
        ("a dog", [], "The text has no mask; write [MASK] in place of a word."),
        (
            "dog " * 40 + "[MASK]",
            [],
            (
                "The text must have at most 32 tokens, special tokens included (got 43); shorten "
                "it or set on_long_text to window."
            ),
        ),
        (
            "[MASK]",
            ["--top-k=99"],
            "top_k must be a whole number from 1 to 39 (got 99).",
        ),
        (
            "[MASK]",
            ["--top-k=two"],
            'top_k must be a whole number from 1 to 39 (got "two").',
        ),
        (
            "[MASK]",
            ["--strategy=jointly"],
            'strategy must be independent or joint (got "jointly").',
        ),
        (
            "[MASK]",
            ["--target=a", "--strategy=joint"],
            'targets and strategy "joint" exclude each other; choose one.',
        ),
        (
            "[MASK]",
            ["--target=é"],
            'The target "é" has characters that the model\'s vocabulary lacks; remove the target.',
        ),
        (
            "[MASK]",
            ["--target= "],
            'targets[0] must be a non-blank text (got " ").',
        ),
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


Pipe = Callable[..., Done]


@pytest.fixture
def pipe(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """Function that runs the command without a text and with given bytes on standard input."""

    def run(content: bytes, *flags: str) -> Done:
        source = tmp_path / "standard_input"
        source.write_bytes(content)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        monkeypatch.setattr(one_text, "open_standard_input", lambda: source.open("rb", buffering=0))
        return fillmask("--bundle", tiny.path, *flags)

    return run


@pytest.mark.parametrize("flags", [["--top-k=2"], ["--task=score"]])
def test_one_line_of_standard_input_is_like_a_text(
    tiny: Tiny, pipe: Pipe, flags: list[str]
) -> None:
    text = "the dog" if "--task=score" in flags else "the [MASK] of"
    for content in (f"{text}\n", text, f"\ufeff{text}\r\n\n \n"):
        assert pipe(content.encode(), *flags) == fillmask(text, "--bundle", tiny.path, *flags)


def test_each_line_of_standard_input_is_a_text(tiny: Tiny, pipe: Pipe) -> None:
    texts = ["the [MASK] of", "a [MASK] [MASK]", "[MASK]"]
    content = "\n".join(texts).encode()
    tables = [fillmask(text, "--bundle", tiny.path).out for text in texts]
    assert pipe(content) == Done(0, "\n".join(tables), "")
    answers = [fillmask(text, "--json", "--bundle", tiny.path).out for text in texts]
    assert pipe(content, "--json") == Done(0, "".join(answers), "")


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
    assert pipe(b"a [MASK]\n" + content) == expected


def test_closed_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert execute(["a [MASK]"]) == 2
    assert capsys.readouterr().err.startswith("Standard output is closed; redirect it")


def test_no_input_is_an_error(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    # Standard input is empty, is closed or is a terminal, from which the command does not read.
    for content in (b"", b"\n\n"):
        assert pipe(content) == Done(
            2, "", "Standard input has no text; write one text per line.\n"
        )
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

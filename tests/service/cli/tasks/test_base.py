"""Bundles without the task or without pairs, for one text, files and streams."""

from pathlib import Path

import pytest

from tests.service.cli.command_line import fillmask, write_rows
from tests.service.tiny import Tiny

TOPICS = (
    'The model "topics" has only the task text-classification; --task must be classify (got {}).\n'
)
TINY = (
    'The model "tiny" has only the task fill-mask; --task must be fill-mask or score '
    "(got classify).\n"
)


@pytest.fixture
def paths(topics: Path, single: Path, tiny: Tiny) -> dict[str, Path]:
    return {"topics": topics, "single": single, "tiny": tiny.path}


@pytest.mark.parametrize(
    ("bundle", "flags", "message"),
    [
        (
            "topics",
            [],
            TOPICS.format("fill-mask"),
        ),
        (
            "topics",
            ["--task=score"],
            TOPICS.format("score"),
        ),
        (
            "tiny",
            ["--task=classify"],
            TINY,
        ),
    ],
)
@pytest.mark.parametrize("kind", ["text", "file", "stream"])
def test_a_bundle_without_the_task(
    paths: dict[str, Path], bundle: str, flags: list[str], message: str, kind: str, tmp_path: Path
) -> None:
    # The command ends before it writes a result.
    source = write_rows(tmp_path / "in.jsonl", [{"inputs": "a"}])
    output = tmp_path / "out.jsonl"
    given: list[object] = ["a"]
    if kind != "text":
        given = ["--input", source, "--output", output if kind == "file" else "-"]
    done = fillmask(*given, "--bundle", paths[bundle], *flags)
    assert (done.code, done.out, done.err) == (2, "", message)
    assert not output.exists()


def test_a_bundle_without_pairs(single: Path, tmp_path: Path) -> None:
    # With a flag for second texts, the command fails. Without it, only rows with pairs fail.
    message = (
        'The model "single" reads single texts; use a model that reads pairs, or remove the '
        "second text.\n"
    )
    source = write_rows(tmp_path / "in.jsonl", [{"inputs": "a", "text_pair": "b"}, {"inputs": "a"}])
    named = ("--task=classify", "--bundle", single)
    streamed = ("--input", source, "--output", "-", "--on-error=report")
    for given in (
        ("a", "--text-pair=b"),
        ("--input", source, "--output", tmp_path / "out.csv", "--text-pair-column=text_pair"),
        (*streamed, "--text-pair-column=text_pair"),
    ):
        assert fillmask(*given, *named).err == message
    done = fillmask(*streamed, *named)
    assert done.err == "in.jsonl: 2 rows, 1 with an error.\n"
    assert "inputs is a pair, but this model reads only single texts; remove text_pair." in done.out


def test_an_empty_second_text(topics: Path) -> None:
    done = fillmask("a", "--text-pair=", "--task=classify", "--bundle", topics)
    assert done.err == "--text-pair is empty; write at least one word.\n"

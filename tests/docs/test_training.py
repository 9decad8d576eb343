"""Commands of the pages that train and export."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask_export import restore
from fillmask_export.commands import main as export_main
from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.commands import main as train_main
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.docs import pages
from tests.model.command_line import ENCODER
from tests.model.samples import VERSES, random_encoder, repetitive_text, small_config

pytestmark = pytest.mark.slow


CLASSIFIER = pages.section(
    pages.read(pages.DOCS / "classification.md"), "Training on your own data"
)
TAGGER = pages.section(pages.read(pages.DOCS / "token-classification.md"), "Train your own")
ENTITY_LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def table_rows(rows: str) -> str:
    """Return a table with 20 copies of each row."""
    header, *examples = rows.splitlines()
    # the split keeps equal texts together, so each copy of a row gets a number
    copies = [row.replace(" ", f" {n} ", 1) for n in range(20) for row in examples]
    return "\n".join([header, *copies]) + "\n"


def json_rows(rows: str) -> str:
    """Return JSON Lines with 20 copies of each row, which keep their offsets."""
    examples = [json.loads(line) for line in rows.splitlines()]
    copies = [row | {"text": f"{row['text']} {n}"} for n in range(20) for row in examples]
    return "".join(json.dumps(row) + "\n" for row in copies)


@pytest.mark.parametrize(
    ("section", "copies", "task", "labels"),
    [
        (CLASSIFIER, table_rows, "text-classification", ("complaint", "request")),
        (TAGGER, json_rows, "token-classification", ENTITY_LABELS),
    ],
)
def test_labels_of_the_page(
    section: str,
    copies: Callable[[str], str],
    task: str,
    labels: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A small checkpoint replaces the built-in model, which takes too long to train.
    monkeypatch.chdir(tmp_path)
    [rows] = re.findall(r"```(?:csv|json)\n(.*?)```", section, re.DOTALL)
    [block] = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    start, train, export = (shlex.split(line) for line in block.splitlines())
    module, bundle, checkpoint = start[2:]
    assert module == restore.__name__
    assert (pages.ROOT / bundle / "bundle.json").is_file()
    Path(next(one for one in train if one.startswith("DATA"))).write_text(copies(rows), "utf-8")
    tokenizer = train_word_pieces([*VERSES, *rows.splitlines()], vocab_size=200)
    config = small_config(vocab_size=tokenizer.get_vocab_size(), max_positions=64)
    save_checkpoint(Path(checkpoint), random_encoder(config), tokenizer.to_str().encode())
    assert train_main([*train[1:], "--epochs=1"]) == 0
    output = Path(train[train.index("--output") + 1])
    for file in re.findall(r"`(\w+\.\w+)`", section):
        assert (output / file).is_file()
    assert export_main(export[1:]) == 0
    written = read_bundle(Path(export[export.index("--output") + 1]))
    head = written.classification or written.token_classification
    assert head is not None
    assert head.labels == labels
    assert (written.tasks, written.precision) == ((task,), "int8")


def test_model_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("TEXTS").mkdir()
    Path("TEXTS/a.txt").write_text(repetitive_text(400))
    Path("HELD_OUT").write_text(repetitive_text(20))
    small = "--row-tokens=64 --batch-rows=2 --warmup-steps=1"
    Path("encoder.json").write_text(json.dumps(ENCODER | {"max_positions": 64}))
    encoder = "--config encoder.json --vocab-size 200"
    start = f"pretrain TEXTS --output DIRECTORY {encoder} --steps 2 {small}"
    assert train_main(shlex.split(start)) == 0
    page = pages.read(pages.DOCS / "built-in-model.md")
    [block] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    ran = []
    for line in block.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line)
        name = Path(program).name
        if arguments[0] == "pretrain":
            arguments += ["--steps=2", *shlex.split(small)]
        if name == "fillmask-export":  # 200 pieces can't write the texts by default
            arguments += ["--texts", "TEXTS/a.txt", "--calibrate", "HELD_OUT"]
        main = {"fillmask-train": train_main, "fillmask-export": export_main}[name]
        assert main(arguments) == 0
        ran.append(name)
    assert ran == ["fillmask-train", "fillmask-train", "fillmask-export"]
    assert read_bundle(Path("bundles/mine")).precision == "int8"

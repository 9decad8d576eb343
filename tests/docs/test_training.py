"""Commands of docs/classification.md and docs/built-in-model.md that train and export."""

from __future__ import annotations

import json
import re
import shlex
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


def test_classifier_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A small checkpoint replaces the built-in model, which takes too long to train.
    monkeypatch.chdir(tmp_path)
    page = pages.read(pages.DOCS / "classification.md")
    [rows] = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)
    header, *examples = rows.splitlines()
    # the split keeps equal texts together, so each copy of a row gets a number
    copies = [row.replace(" ", f" {n} ", 1) for n in range(20) for row in examples]
    Path("DATA.csv").write_text("\n".join([header, *copies]) + "\n", encoding="utf-8")
    block = next(code for code in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "DATA" in code)
    start, train, export = (shlex.split(line) for line in block.splitlines())
    module, bundle, checkpoint = start[2:]
    assert module == restore.__name__
    assert (pages.ROOT / bundle / "bundle.json").is_file()
    tokenizer = train_word_pieces([*VERSES, *examples], vocab_size=200)
    config = small_config(vocab_size=tokenizer.get_vocab_size(), max_positions=64)
    save_checkpoint(Path(checkpoint), random_encoder(config), tokenizer.to_str().encode())
    assert train_main([*train[1:], "--epochs=1"]) == 0
    for file in re.findall(r"`(\w+\.\w+)`", pages.section(page, "Training on your own data")):
        assert (Path("runs/labels") / file).is_file()
    assert export_main(export[1:]) == 0
    written = read_bundle(Path(export[-3]))
    assert written.classification is not None
    assert written.classification.labels == ("complaint", "request")
    assert (written.tasks, written.precision) == (("text-classification",), "int8")


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

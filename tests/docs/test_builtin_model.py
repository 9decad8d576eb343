"""Examples and commands of docs/built-in-model.md and the model card."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from benchmarks import generated_block
from benchmarks.quality.cloze import probe, table
from benchmarks.quality.examples import HEAD, PAGE, answered, rows
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask_export.commands import main as export_main
from fillmask_model.commands import main as train_main
from tests.model.command_line import ENCODER
from tests.model.samples import repetitive_text


def test_examples_are_the_services_answers_within_a_hundredth() -> None:
    said = rows()
    answers = list(answered(line.split(" | ")[0].strip("| ") for line in said))
    assert generated_block.read(PAGE, "quality/examples").splitlines()[: len(HEAD)] == HEAD
    assert len(said) >= 8
    for line, answer in zip(said, answers, strict=True):
        assert re.sub(r"\(.*", "", line) == re.sub(r"\(.*", "", answer)
        shares = [float(re.findall(r"\((.*)\)", text)[0]) for text in (line, answer)]
        assert shares[0] == pytest.approx(shares[1], abs=0.011)


def test_cloze_probe_on_the_model_card_is_current() -> None:
    assert generated_block.read(generated_block.MODEL_CARD, "quality/cloze").strip() == table(
        probe(default_bundle_path())
    )


@pytest.mark.slow
def test_training_commands_of_the_page_make_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("TEXTS").mkdir()
    Path("TEXTS/a.txt").write_text(repetitive_text(400))
    Path("HELD_OUT").write_text(repetitive_text(20))
    small = "--row-tokens=64 --batch-rows=2 --warmup-steps=1"
    Path("encoder.json").write_text(json.dumps(ENCODER | {"max_positions": 64}))
    encoder = "--config encoder.json --vocab-size 200"
    start = f"pretrain TEXTS --output DIRECTORY {encoder} --steps 2 {small}"
    assert train_main(shlex.split(start)) == 0
    [block] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
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

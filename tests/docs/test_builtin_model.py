"""What docs/built-in-model.md, the model card and the README say of the built-in model is so."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from benchmarks import generated_block
from benchmarks.quality.cloze import probe, table
from benchmarks.quality.examples import HEAD, PAGE, answered, rows
from export.commands import main as export_main
from model.commands import main as train_main
from service.bundles.bundle import default_bundle_path, read_bundle
from tests.model.command_line import ENCODER
from tests.model.samples import repetitive_text

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_are_what_the_service_answers() -> None:
    """The page's sentences are filled as it says; a probability may differ by a hundredth."""
    said = rows()
    answers = list(answered(line.split(" | ")[0].strip("| ") for line in said))
    assert generated_block.read(PAGE, "quality/examples").splitlines()[: len(HEAD)] == HEAD
    assert len(said) >= 8
    for line, answer in zip(said, answers, strict=True):
        assert re.sub(r"\(.*", "", line) == re.sub(r"\(.*", "", answer)
        shares = [float(re.findall(r"\((.*)\)", text)[0]) for text in (line, answer)]
        assert shares[0] == pytest.approx(shares[1], abs=0.011)


def test_the_card_has_the_cloze_probe_as_it_is() -> None:
    """Asked again, the bundle fills in what the card says, kind by kind."""
    assert generated_block.read(generated_block.MODEL_CARD, "quality/cloze").strip() == table(
        probe(default_bundle_path())
    )


def test_the_readme_has_the_cards_figures() -> None:
    """Of rows of 256 tokens and of the cloze probe."""
    accuracy = generated_block.read(generated_block.MODEL_CARD, "quality/bundle_accuracy")
    precision = read_bundle(default_bundle_path()).precision
    [line] = re.findall(rf"\| heldout\.txt \| 256.*bundle {precision} \|(.*)", accuracy)
    first, among_five = re.findall(r"([\d.]+ %) \(", line)
    assert f"256-token rows, top 1 and top 5 | {first} and {among_five} |" in README
    all_prompts = r"\| all \| \d+ \| (\d+ %) \| (\d+ %) \|"
    [(first, among_five)] = re.findall(
        all_prompts, generated_block.read(generated_block.MODEL_CARD, "quality/cloze")
    )
    assert f"everyday prompts, top 1 and top 5 | {first} and {among_five} |" in README


def test_training_on_own_text_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands, on a checkpoint made in an instant, end with a bundle that can be served."""
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
        main = {"fillmask-train": train_main, "fillmask-export": export_main}[name]
        assert main(arguments) == 0
        ran.append(name)
    assert ran == ["fillmask-train", "fillmask-train", "fillmask-export"]
    assert read_bundle(Path("bundles/mine")).precision == "int8"

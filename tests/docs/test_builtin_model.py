"""Commands of docs/built-in-model.md."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask_export.commands import main as export_main
from fillmask_model.commands import main as train_main
from tests.docs import pages
from tests.model.command_line import ENCODER
from tests.model.samples import repetitive_text


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

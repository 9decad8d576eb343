"""Commands of a lease."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.commands import main
from fillmask_model.training.lease import __main__ as step_command
from fillmask_model.training.lease.__main__ import main as step_main
from tests.model.command_line import save_small
from tests.model.training.lease.samples import TINY

pytestmark = pytest.mark.slow

STEP = ("--seconds=0.3", "--margin=0", "--device=cpu", "--work=disk", "--output=out")
# what a borrowed machine may lack
ABSENT = (
    "google",
    "safetensors",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pydantic",
    "scipy",
    "sentencepiece",
)


@pytest.fixture
def packed(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the pack of a small checkpoint in pack/."""
    # this process is older than the limit of the steps
    monkeypatch.setattr(step_command, "process_age", lambda: 0.0)
    Path("plan.json").write_text(json.dumps(TINY | {"short_lengths": [8, 16]}))
    save_small("init", Path("tokenizer.json").read_bytes(), vocab_size=200)
    assert pack("--init=init") == 0
    return workplace


def pack(*options: str) -> int:
    common = ("--held-out=text.txt", "--output=pack", "--plan=plan.json")
    return main(["lease", "pack", "text.txt", *common, *options])


def test_a_lease_from_text_to_checkpoint(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert step_main(["step", *STEP, "--load", "pack/load_1", "--weights", "pack/start"]) == 0
    assert step_main(["step", *STEP]) == 0
    join = ["lease", "join", "out", "--pack=pack", "--output=joined", "--restart=again"]
    assert main(join) == 0
    printed = capsys.readouterr().out
    assert "held_out_short: held-out loss" in printed
    joined = load_checkpoint(Path("joined"))
    assert joined.tokenizer_json == Path("tokenizer.json").read_bytes()
    assert joined.model.config == load_checkpoint(Path("init")).model.config
    # the weights go on a new machine, which has room for no more than 8 bits
    options = [*STEP, "--work=other disk", "--load=pack/load_1", "--weights=again"]
    assert step_main(["step", *options]) == 0
    assert main(["lease", "step", *STEP]) == 0


def test_a_lease_may_begin_with_a_new_encoder(packed: Path) -> None:
    fields = {"d_model": 8, "num_layers": 3, "num_heads": 1, "d_ff": 8, "max_positions": 16}
    Path("shape.json").write_text(json.dumps(fields))
    assert pack("--config=shape.json", "--tokenizer=tokenizer.json") == 0
    assert step_main(["step", *STEP, "--load", "pack/load_1", "--weights", "pack/start"]) == 0
    assert main(["lease", "join", "out", "--pack=pack", "--output=joined"]) == 0
    assert load_checkpoint(Path("joined")).model.config.num_layers == 3


def test_a_step_needs_few_packages(packed: Path) -> None:
    program = f"""
import sys
for name in {ABSENT}:
    sys.modules[name] = None
from fillmask_model.training.lease.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", program, "step", *STEP, "--load=pack/load_1"]
    done = subprocess.run(
        [*command, "--weights=pack/start"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "done after" in done.stdout


def test_mistakes_are_one_line(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert step_main(["step", *STEP]) == 2
    assert "lease: disk has no load; give the first one with --load" in capsys.readouterr().err
    assert pack("--config=encoder.json") == 2
    assert "has no tokenizer; set --tokenizer" in capsys.readouterr().err
    join = ["lease", "join", "pack/start", "--output=joined"]
    assert main([*join, "--pack=nowhere"]) == 2
    assert "tokenizer.json does not exist; give the directory of" in capsys.readouterr().err
    Path("pack/tokenizer.json").write_text("{}")
    assert main([*join, "--pack=pack"]) == 2
    assert "must be the tokenizer of the weights in pack/start" in capsys.readouterr().err
    assert not Path("joined").exists()
    save_small("small", Path("tokenizer.json").read_bytes(), vocab_size=9)
    assert pack("--init=small") == 2
    assert "must have at most 9 tokens, one for each" in capsys.readouterr().err
    assert pack("--init=init", "--short-documents=2") == 2
    assert "short_documents must be from 0 to 1 (got 2.0)" in capsys.readouterr().err


def test_a_join_replaces_no_file_of_the_user(
    packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine").mkdir()
    Path("mine/config.json").write_text("{}")
    assert main(["lease", "join", "pack/start", "--pack=pack", "--output=mine"]) == 2
    assert "does not come from fillmask" in capsys.readouterr().err

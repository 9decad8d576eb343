"""One-line errors of `fillmask-train` with exit status 2 for wrong command lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer

from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.commands import main
from tests.model.command_line import ENCODER, QUICK, pretrain, save_small
from tests.model.samples import VERSES

pytestmark = pytest.mark.usefixtures("workplace", "no_curve")


def text(name: str, content: str) -> Callable[[], Any]:
    """Return a function that writes a file."""
    return lambda: Path(name).write_text(content)


def bigger_tokenizer() -> None:
    """Save a checkpoint and a tokenizer with more tokens than the checkpoint's table has rows."""
    save_small("start", None)
    tokenizer = Tokenizer.from_file("tokenizer.json")
    tokenizer.add_special_tokens([AddedToken("[EXTRA]", special=True)])
    tokenizer.save("bigger.json")


START = ["pretrain", "text.txt", *QUICK, "--output=run"]
TRAIN = [*START, "--config=encoder.json"]
MISTAKES: dict[str, tuple[Callable[[], Any], list[str], str]] = {
    "no such text": (list, ["pretrain", "nowhere.txt", "--output=run"], "nowhere.txt does not"),
    "an empty directory": (
        lambda: Path("empty").mkdir(),
        ["pretrain", "empty", "--output=run"],
        "empty must contain a .txt",
    ),
    "too little text": (text("text.txt", VERSES[0]), TRAIN, "must be at least batch_rows, 4"),
    "too little held out": (
        text("held-out.txt", "the cat"),
        [*TRAIN, "--held-out=held-out.txt"],
        "held-out text must fill a row of 16 tokens",
    ),
    "a start without tokenizer": (
        lambda: save_small("start", None),
        [*START, "--init=start"],
        "start has no tokenizer; set --tokenizer",
    ),
    "a tokenizer too big": (
        bigger_tokenizer,
        [*START, "--init=start", "--tokenizer=bigger.json"],
        "at most 61 tokens, one for each token embedding of the checkpoint",
    ),
    "a start and a configuration": (list, [*TRAIN, "--init=start"], "remove --config"),
    "a size the tokenizer decides": (
        text("encoder.json", json.dumps(ENCODER | {"vocab_size": 9})),
        TRAIN,
        "has vocab_size, which the tokenizer sets; remove",
    ),
    "a broken state": (
        lambda: (main([*TRAIN, "--until-step=1"]), Path("run/train_state.pt").write_bytes(b"PK")),
        [*TRAIN, "--resume"],
        "train_state.pt is incomplete",
    ),
    "no such tokenizer": (list, [*TRAIN, "--tokenizer=nowhere.json"], "nowhere.json"),
    "nothing to resume": (list, [*TRAIN, "--resume"], "start the run without --resume"),
    "another run's state": (
        lambda: main([*TRAIN, "--until-step=1"]),
        [*TRAIN, "--resume", "--seed=7"],
        "another configuration",
    ),
    "another run's texts": (
        lambda: (
            main([*TRAIN, "--until-step=1"]),
            Path("text.txt").write_text("the dog ran\n" * 99),
        ),
        [*TRAIN, "--resume"],
        "the texts differ from those of the run in run; give the same",
    ),
    "another run's held-out text": (
        lambda: main([*TRAIN, "--until-step=1"]),
        [*TRAIN, "--resume", "--held-out=text.txt"],
        "the files of --held-out differ from those of the run in run",
    ),
    "another encoder's state": (
        lambda: (
            main([*TRAIN, "--until-step=1"]),
            Path("encoder.json").write_text(json.dumps(ENCODER | {"d_ff": 8})),
        ),
        [*TRAIN, "--resume"],
        "another encoder",
    ),
    "evaluation without tokenizer": (
        lambda: save_small("run", None),
        ["evaluate", "run", "--held-out=text.txt"],
        "run must have a tokenizer.json",
    ),
}


@pytest.mark.parametrize(("prepare", "arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_exit_status_2(
    capsys: pytest.CaptureFixture[str],
    prepare: Callable[[], Any],
    arguments: list[str],
    message: str,
) -> None:
    prepare()
    capsys.readouterr()
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fillmask-train: ")
    assert message in line


def test_a_loss_that_is_no_number_is_a_line_too(
    capsys: pytest.CaptureFixture[str], tokenizer: Tokenizer
) -> None:
    # A loss of NaN ends the run with a one-line error that names the step.
    size = tokenizer.get_vocab_size()
    checkpoint = save_small("start", tokenizer.to_str().encode(), vocab_size=size)
    with torch.no_grad():
        checkpoint.model.head_bias.fill_(-3e38)
        checkpoint.model.head_bias[0] = 3e38
    save_checkpoint(Path("start"), checkpoint.model, tokenizer.to_str().encode())
    assert pretrain("--init=start", "--output=run") == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "fillmask-train: the loss must be finite (got inf at step 1); reduce learning_rate"
    )

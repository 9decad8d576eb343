"""Files and output of `fillmask-train`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.commands import main
from fillmask_model.documents import read_documents
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.pretraining.texts import TextFiles, tokenize
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from tests.model.command_line import ENCODER, pretrain, save_small
from tests.model.samples import repetitive_text, small_config

pytestmark = pytest.mark.usefixtures("workplace")


def test_pretraining_writes_a_whole_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    # The run prints a progress bar with speed and remaining time.
    assert pretrain("--output=new/run", "--vocab-size=90") == 0
    names = {path.name for path in Path("new/run").iterdir()}
    checkpoint = {"config.json", "model.safetensors", "tokenizer.json", "train_state.pt"}
    assert names == checkpoint | {"metrics.jsonl", "curve.png", "rows.safetensors"}
    config = load_checkpoint(Path("new/run")).model.config
    assert config.to_dict() == small_config(vocab_size=config.vocab_size, **ENCODER).to_dict()
    assert 60 < config.vocab_size <= 90
    said = capsys.readouterr()
    assert "tokens/s" in said.err
    assert "<00:0" in said.err  # the time left
    assert "held-out loss" in said.out + said.err


def test_one_row_in_a_hundred_is_set_aside(tokenizer: Tokenizer) -> None:
    # Every hundredth row is for evaluation only.
    Path("text.txt").write_text(repetitive_text(150))
    files = TextFiles([Path("text.txt")], [])
    found = tokenize(files, tokenizer, TrainConfig(row_tokens=16))
    documents = read_documents(files.training)
    rows = pack_rows(documents, tokenizer, SpecialTokens.from_tokenizer(tokenizer), 16).tolist()
    assert len(rows) > 200
    assert found["held_out"].tolist() == rows[::100]
    assert found["packed"].tolist() == [row for i, row in enumerate(rows) if i % 100]


@pytest.mark.usefixtures("no_curve")
def test_resuming_keeps_tokenizer_and_weights() -> None:
    # The run needs the stored tokenizer, because a second training gives a different tokenizer.
    assert pretrain("--output=halves", "--vocab-size=90", "--until-step=2") == 0
    tokenizer_json = Path("halves/tokenizer.json").read_bytes()
    assert pretrain("--output=halves", "--vocab-size=90", "--resume") == 0
    assert Path("halves/tokenizer.json").read_bytes() == tokenizer_json
    Path("learnt.json").write_bytes(tokenizer_json)
    assert pretrain("--output=whole", "--tokenizer=learnt.json") == 0
    assert (
        Path("whole/model.safetensors").read_bytes()
        == Path("halves/model.safetensors").read_bytes()
    )


@pytest.mark.usefixtures("no_curve")
def test_a_run_killed_before_its_first_checkpoint_starts_again() -> None:
    # Such a run leaves only rows and a log.
    assert pretrain("--output=run", "--tokenizer=tokenizer.json") == 0
    for name in ("config.json", "tokenizer.json", "model.safetensors", "train_state.pt"):
        Path("run", name).unlink()
    assert pretrain("--output=run", "--tokenizer=tokenizer.json") == 0
    assert pretrain("--output=run", "--tokenizer=tokenizer.json") == 0


@pytest.mark.usefixtures("no_curve")
def test_pretraining_can_start_from_a_checkpoint(tokenizer: Tokenizer) -> None:
    # The first weights, the sizes and the tokenizer come from the checkpoint.
    tokenizer_json = tokenizer.to_str().encode()
    start = save_small("start", tokenizer_json, vocab_size=tokenizer.get_vocab_size())
    assert pretrain("--init=start", "--output=run", "--learning-rate=1e-9") == 0
    end = load_checkpoint(Path("run"))
    assert end.model.config == start.model.config
    assert end.tokenizer_json is not None
    assert json.loads(end.tokenizer_json) == json.loads(tokenizer_json)
    for name, tensor in start.model.state_dict().items():
        torch.testing.assert_close(end.model.state_dict()[name], tensor, rtol=0, atol=1e-7)


@pytest.mark.usefixtures("no_curve")
def test_rows_and_short_texts_are_trained_on_and_evaluated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pretrain("--output=run", "--short-share=0.5", "--row-tokens=16") == 0
    said = re.findall(r"([\d,]+) tokens in short texts", capsys.readouterr().out)
    assert len(said) == 1
    assert int(said[0].replace(",", "")) > 100
    shares, counts = {"loss", "perplexity", "top_1", "top_5"}, []
    for options in (["--row-tokens=16"], ["--short-texts"]):
        assert main(["evaluate", "run", "--held-out=text.txt", *options]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert set(figures) == shares | {"predicted_tokens", "confidence", "intervals"}
        assert set(figures["intervals"]) == shares
        for name, (low, high) in figures["intervals"].items():
            assert low <= figures[name] <= high
        counts.append(figures["predicted_tokens"])
    assert counts[0] != counts[1] > 100

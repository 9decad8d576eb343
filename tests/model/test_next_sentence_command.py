"""Commands `fillmask-train pretrain --next-sentence` and `evaluate --next-sentence`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.commands import main
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining import pair_data
from fillmask_model.pretraining.row_files import load_or_build_arrays
from tests.model.command_line import pretrain, save_small
from tests.model.samples import repetitive_text, small_config

pytestmark = pytest.mark.slow

EVALUATE = ["evaluate", "run", "--held-out=text.txt", "--row-tokens=16", "--next-sentence"]


def pretrain_on_pairs(*arguments: str) -> int:
    """Pretrain on text.txt with next-sentence prediction."""
    return pretrain("--next-sentence", "--held-out=held-out.txt", *arguments)


@pytest.fixture(autouse=True)
def _held_out(workplace: Path) -> None:
    (workplace / "held-out.txt").write_text(repetitive_text(30))


def test_a_run_prints_and_saves_a_next_sentence_head(capsys: pytest.CaptureFixture[str]) -> None:
    # The evaluation prints the accuracy on all held-out pairs and its interval.
    assert pretrain_on_pairs("--output=run") == 0
    said = capsys.readouterr()
    assert "new parts: next-sentence head" in said.out
    assert re.search(r"\d+ training pairs in the first epoch, \d+ held out", said.out)
    assert re.search(r"held-out loss .* next sentence \d+\.\d % \(", said.out + said.err)
    model = load_checkpoint(Path("run")).model
    assert model.classifier is not None
    assert model.classifier.config == ClassifierConfig.next_sentence()
    assert main(EVALUATE) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["predicted_tokens"] > 100
    figures = report["next_sentence"]
    low, high = figures["accuracy_interval"]
    assert 0 <= low <= figures["accuracy"] <= high <= 1
    assert figures["pairs"] > 50
    assert figures["loss"] > 0


def test_resuming_keeps_head_and_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    # The resumed run gives exactly the same weights and does not tokenize the text again.
    arguments = ("--tokenizer=tokenizer.json", "--short-share=0.5")
    assert pretrain_on_pairs("--output=whole", *arguments) == 0
    assert pretrain_on_pairs("--output=halves", *arguments, "--until-step=2") == 0
    monkeypatch.setattr(pair_data, "read_sentences", None)
    assert pretrain_on_pairs("--output=halves", *arguments, "--resume") == 0
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("whole", "halves")]
    assert weights[0] == weights[1]
    assert "classifier.output.weight" in load_file("whole/model.safetensors")


@pytest.mark.parametrize("types", [0, 2])
def test_a_checkpoint_gets_the_parts_that_it_lacks(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str], types: int
) -> None:
    # With a learning rate of 1e-9, the initial weights and the zeros for type 0 hardly change.
    size, tokenizer_json = tokenizer.get_vocab_size(), tokenizer.to_str().encode()
    start = save_small("start", tokenizer_json, vocab_size=size, type_vocab_size=types)
    assert pretrain_on_pairs("--init=start", "--output=run", "--learning-rate=1e-9") == 0
    parts = ["embeddings of 2 token types"] * (not types) + ["next-sentence head"]
    assert f"new parts: {', '.join(parts)}\n" in capsys.readouterr().out
    weights = load_checkpoint(Path("run")).model.state_dict()
    for name, tensor in start.model.state_dict().items():
        torch.testing.assert_close(weights[name], tensor, rtol=0, atol=1e-7)
    if not types:
        table = weights["embeddings.token_type.weight"]
        torch.testing.assert_close(table[0], torch.zeros(16), rtol=0, atol=1e-7)
        assert float(table[1].std()) > 0.01
    assert pretrain_on_pairs("--init=run", "--output=more") == 0
    assert "new parts: none" in capsys.readouterr().out


def test_a_trained_head_goes_on_without_pairs(tokenizer: Tokenizer) -> None:
    # A run without pairs keeps the head's weights.
    assert pretrain_on_pairs("--output=run") == 0
    assert pretrain("--init=run", "--output=more") == 0
    heads = [
        {n: t for n, t in load_file(f"{run}/model.safetensors").items() if "classifier" in n}
        for run in ("run", "more")
    ]
    assert len(heads[0]) == 4
    for name, tensor in heads[0].items():
        assert torch.equal(heads[1][name], tensor)


def test_one_document_in_a_hundred_is_set_aside(capsys: pytest.CaptureFixture[str]) -> None:
    # Neither the training pairs nor the short texts come from held-out documents.
    documents = repetitive_text(301).strip().split("\n\n")
    documents[::100] = [" fox sea\nsea fox fox " * 3] * 4
    Path("text.txt").write_text("\n\n".join(documents))
    assert pretrain("--next-sentence", "--output=run", "--tokenizer=tokenizer.json") == 0
    arrays = load_or_build_arrays(
        Path("run/sentences"), json.loads(Path("run/sentences/key.json").read_text()), dict
    )
    assert len(arrays["training_documents"]) == 298
    assert len(arrays["held_out_documents"]) == 5
    tokenizer = Tokenizer.from_file("run/tokenizer.json")
    assert "fox sea sea" in tokenizer.decode(arrays["held_out_tokens"].tolist())
    assert "fox sea sea" not in tokenizer.decode(arrays["training_tokens"].tolist())


def save_classifier(tokenizer: Tokenizer) -> None:
    """Save a checkpoint whose labels are not those of next-sentence prediction."""
    config = small_config(vocab_size=tokenizer.get_vocab_size(), max_positions=16)
    model = TiedEncoder(config, ClassifierConfig(labels=("good", "bad")))
    save_checkpoint(Path("run"), model, tokenizer.to_str().encode())


def test_mistakes_are_one_line(tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]) -> None:
    def error_of(status: int) -> str:
        assert status == 2
        (line,) = capsys.readouterr().err.splitlines()
        return str(line)

    save_small("run", tokenizer.to_str().encode(), vocab_size=tokenizer.get_vocab_size())
    assert "labels is_next and not_next (got no head); train one" in error_of(main(EVALUATE))
    save_classifier(tokenizer)
    assert "labels is_next and not_next (got good, bad); train" in error_of(main(EVALUATE))
    assert "the labels is_next and not_next and the pooling 'first' (got good, bad" in error_of(
        pretrain_on_pairs("--init=run", "--output=other")
    )
    Path("held-out.txt").write_text(repetitive_text(1))
    assert "held-out text: the text must have at least two documents" in error_of(
        pretrain_on_pairs("--output=other")
    )
    assert "short_share must be below 1" in error_of(
        pretrain_on_pairs("--output=other", "--short-share=1")
    )
    assert "next_sentence and round_weights" in error_of(
        pretrain_on_pairs("--output=other", "--round-weights")
    )

"""Starting points: checkpoints and random weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.classification.start import Start
from fillmask_model.encoder.classifier import ClassifierConfig
from tests.model.classification.samples import TINY, dataset_of
from tests.model.command_line import save_small

HEAD = ClassifierConfig(labels=("a", "b"), activation=None)

pytestmark = pytest.mark.usefixtures("workplace")


def test_a_checkpoint_gives_weights_and_tokenizer(tokenizer: Tokenizer) -> None:
    # The checkpoint determines the encoder, and the seed determines the head.
    saved = save_small("start", tokenizer.to_str().encode(), vocab_size=200)
    start = Start.from_checkpoint(Path("start"))
    models = [start.build(HEAD, seed) for seed in (0, 0, 1)]
    for name, tensor in saved.model.state_dict().items():
        assert all(torch.equal(model.state_dict()[name], tensor) for model in models)
    heads = [model.get_parameter("classifier.output.weight") for model in models]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])
    assert start.tokenizer.get_vocab() == tokenizer.get_vocab()


def test_the_same_encoder_without_weights_is_random(tokenizer: Tokenizer) -> None:
    saved = save_small("start", tokenizer.to_str().encode(), vocab_size=200)
    start = Start.from_checkpoint(Path("start")).without_weights()
    first, second = (start.build(HEAD, seed) for seed in (0, 1))
    assert first.config == saved.model.config
    table = first.embeddings.word.weight
    assert not torch.equal(table, saved.model.embeddings.word.weight)
    assert not torch.equal(table, second.embeddings.word.weight)


def test_a_checkpoint_without_a_tokenizer_is_rejected() -> None:
    save_small("start", None)
    with pytest.raises(CheckpointError, match=r"start has no tokenizer; add tokenizer.json"):
        Start.from_checkpoint(Path("start"))


def test_a_tokenizer_larger_than_the_embeddings_is_rejected(tokenizer: Tokenizer) -> None:
    save_small("start", tokenizer.to_str().encode(), vocab_size=30)
    with pytest.raises(CheckpointError, match=r"start: the tokenizer must have at most 30 tokens"):
        Start.from_checkpoint(Path("start"))


def test_from_scratch_with_a_new_tokenizer() -> None:
    start = Start.from_scratch(dataset_of([("zebra crossing", "a")]), None, None)
    assert {"zebra", "crossing", "[MASK]"} <= set(start.tokenizer.get_vocab())
    expected = {"d_model": 256, "num_layers": 4, "max_positions": 512}
    expected["vocab_size"] = start.tokenizer.get_vocab_size()
    assert {name: getattr(start.config, name) for name in expected} == expected


def test_from_scratch_with_given_files(tokenizer: Tokenizer) -> None:
    Path("tiny.json").write_text(json.dumps(TINY))
    dataset = dataset_of([("x", "a")])
    start = Start.from_scratch(dataset, Path("tiny.json"), Path("tokenizer.json"))
    assert start.config.d_model == 16
    assert start.tokenizer.get_vocab() == tokenizer.get_vocab()
    Path("tiny.json").write_text(json.dumps(TINY | {"vocab_size": 9}))
    with pytest.raises(ValueError, match=r"tiny.json has vocab_size, which the tokenizer sets"):
        Start.from_scratch(dataset, Path("tiny.json"), None)

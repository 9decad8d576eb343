"""Restoration of a checkpoint from an int8 bundle."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from export.restore import main, restore
from model.checkpoints.checkpoint import load_checkpoint
from service.bundles.bundle import default_bundle_path, read_bundle
from service.tokenization.tokenizer import Tokenizer
from tests.service.tiny import write_bundle

BUNDLE = read_bundle(default_bundle_path())


def test_restored_encoder_gives_the_golden_fills(tmp_path: Path) -> None:
    # The log-probabilities differ by at most 0.2 nats, the error of arithmetic in int8.
    # The best token is the same for all masks but one, whose two best tokens have almost the same
    # probability.
    main([str(BUNDLE.path), str(tmp_path)])
    model = load_checkpoint(tmp_path).model.eval()
    tokenizer = Tokenizer.from_bundle(BUNDLE)
    different = 0
    for prompt in BUNDLE.golden.prompts:
        encoded = tokenizer.encode(prompt.text)
        ids = torch.from_numpy(encoded.input_ids)[None]
        masked = torch.zeros_like(ids, dtype=torch.bool)
        masked[0, encoded.mask_positions] = True
        with torch.inference_mode():
            log_probs_MV = model(ids, masked).log_softmax(-1)
        for row_V, fills in zip(log_probs_MV, prompt.fills, strict=True):
            different += int(row_V.argmax()) != fills[0].token
            expected = torch.tensor([fill.log_prob for fill in fills])
            found = row_V[[fill.token for fill in fills]]
            assert float((found - expected).abs().max()) <= 0.2
    assert different <= 1


def test_a_bundle_in_fp32_is_refused(tmp_path: Path) -> None:
    write_bundle(tmp_path / "tiny")
    with pytest.raises(ValueError, match=r"(must be|use) an int8 bundle of BERT"):
        restore(read_bundle(tmp_path / "tiny"))

"""Checkpoints with trained weights, exported by the command and compared with transformers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from fillmask import FillMask
from fillmask.bundles.bundle import read_bundle
from fillmask.tokenization.tokenizer import Tokenizer
from tests.parity.trained_checkpoints import TRAINED, Package

pytestmark = [pytest.mark.processes, pytest.mark.slow]

MASK_EVERY = 7  # one of seven tokens is a mask
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def export(directory: Path, package: Package, precision: str) -> Path:
    """Run `fillmask-export` and return the directory of the bundle."""
    options = [f"--output={directory / precision}", f"--precision={precision}"]
    for option, texts in zip(("texts", "calibrate"), package.texts(), strict=True):
        (directory / option).write_text("\n".join(texts))
        options.append(f"--{option}={directory / option}")
    command = [sys.executable, "-m", "fillmask_export", str(directory / "checkpoint"), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return directory / precision


def first_fills(bundle: Path, masked: list[str]) -> list[int]:
    """Return the id of the first fill of each mask."""
    with FillMask(bundle) as model:
        return [fill.token for fills in model.fill(masked, top_k=1) for [fill] in fills]


@pytest.mark.parametrize("name", TRAINED)
@torch.inference_mode()
def test_first_fills_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    package, checkpoint = TRAINED[name], tmp_path / "checkpoint"
    package.write_checkpoint(checkpoint)
    bundles = [export(tmp_path, package, precision) for precision in ("fp32", "int8")]
    tokenizer = Tokenizer.from_bundle(read_bundle(bundles[0]))
    vocabulary = (checkpoint / "vocab.txt").read_text().split()
    model = getattr(transformers, package.model).from_pretrained(checkpoint, dtype=torch.float32)

    masked, hidden, expected = [], [], []
    for text in package.texts()[0]:
        for first in range(MASK_EVERY):
            tokens = package.tokens(text)
            hidden += [vocabulary.index(token) for token in tokens[first::MASK_EVERY]]
            tokens[first::MASK_EVERY] = ["[MASK]"] * len(tokens[first::MASK_EVERY])
            masked.append(("" if package.code else " ").join(tokens))
            ids = [vocabulary.index(token) for token in ("[CLS]", *tokens, "[SEP]")]
            assert tokenizer.encode(masked[-1]).input_ids.tolist() == ids
            logits = model(torch.tensor([ids])).logits[0, 1 + first : -1 : MASK_EVERY]
            logits[:, [vocabulary.index(token) for token in SPECIAL]] = -torch.inf
            expected += logits.argmax(-1).tolist()

    fp32, int8 = (first_fills(bundle, masked) for bundle in bundles)
    assert fp32 == expected
    assert np.equal(int8, fp32).mean() > 0.97
    assert min(np.equal(fills, hidden).mean() for fills in (fp32, int8)) > 0.8

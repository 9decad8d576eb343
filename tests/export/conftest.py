"""Fixtures for the tests of export/."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fillmask_model.quantization import smoothing
from tests.model.samples import VERSES, random_encoder, small_config, verse_tokenizer


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Use one thread, because tensors this small are slower on several threads."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _few_smoothing_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run only a tenth of the smoothing steps.

    All steps take 85 % of the time of a tiny int8 export. After a tenth of the
    steps, the factors are less accurate, so the accuracy bounds of int8 are harder to meet.
    tests/model/quantization and the export of tests/docs/test_training.py run all steps.
    """
    monkeypatch.setattr(smoothing, "STEPS", smoothing.STEPS // 10)


@pytest.fixture(scope="session")
def checkpoint_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a random encoder's checkpoint, with a tokenizer trained on the verses."""
    tokenizer = verse_tokenizer()
    config = small_config(vocab_size=tokenizer.get_vocab_size(), num_layers=3, max_positions=24)
    directory = tmp_path_factory.mktemp("checkpoint") / "tiny"
    save_checkpoint(directory, random_encoder(config), tokenizer.to_str().encode())
    return directory


@pytest.fixture
def checkpoint(checkpoint_path: Path) -> Checkpoint:
    return load_checkpoint(checkpoint_path)


@pytest.fixture
def texts() -> SampleTexts:
    """Sentences of words in the tokenizer's vocabulary."""
    return SampleTexts(verification=VERSES, calibration=[verse.upper() for verse in VERSES])

"""Fixtures for the tests of model/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining import loop
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.pretraining.texts import TrainingText
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from tests.model.command_line import ENCODER
from tests.model.samples import ROW_TOKENS, VERSES, repetitive_text, small_config, verse_tokenizer


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Use one thread, which is faster for small tensors and keeps the order of sums."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """WordPiece tokenizer trained on the verses, with every word of the verses as a token."""
    return verse_tokenizer()


@pytest.fixture(scope="session")
def rows(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Rows packed from repeated verses."""
    documents = [VERSES[i % 3] for i in range(100)]
    return pack_rows(documents, tokenizer, SpecialTokens.from_tokenizer(tokenizer), ROW_TOKENS)[:64]


@pytest.fixture
def no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the drawing of curves, which takes most of a tiny run's time."""
    monkeypatch.setattr(loop, "draw_curve", lambda _: None)


@pytest.fixture
def pretraining(tokenizer: Tokenizer, rows: NDArray[np.int32], tmp_path: Path) -> Any:
    """Function that returns a tiny run with changed fields of its configuration."""

    def make(
        *, weights_seed: int = 0, name: str = "run", held_out_rows: int = 8, **changes: Any
    ) -> Pretraining:
        torch.manual_seed(weights_seed)
        fields: dict[str, Any] = {
            "steps": 40,
            "row_tokens": ROW_TOKENS,
            "batch_rows": 8,
            "warmup_steps": 5,
            "select_rate": 0.3,
            "evaluate_every_steps": 5,
            "checkpoint_every_steps": 20,
        }
        return Pretraining(
            model=TiedEncoder(small_config(vocab_size=tokenizer.get_vocab_size())),
            text=TrainingText(rows[8:], rows[:held_out_rows]),
            tokenizer_json=tokenizer.to_str().encode(),
            special=SpecialTokens.from_tokenizer(tokenizer),
            config=TrainConfig(**(fields | changes)),
            directory=tmp_path / name,
            device="cpu",
        )

    return make


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer) -> Path:
    """Working directory with a text, an encoder configuration and a tokenizer."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(repetitive_text(60))
    Path("encoder.json").write_text(json.dumps(ENCODER))
    tokenizer.save("tokenizer.json")
    return tmp_path

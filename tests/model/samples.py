"""Small encoders, a tokenizer and texts for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models
from torch import Tensor, nn

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.layer_precision import (
    VOCABULARY,
    is_int8_linear,
    shared_input_name,
)
from fillmask_model.quantization.rounding_plan import RoundingPlan
from fillmask_model.tokenizers.word_pieces import train_word_pieces

SMALL: dict[str, Any] = {
    "vocab_size": 61,
    "d_model": 24,
    "num_layers": 2,
    "num_heads": 3,
    "d_ff": 40,
    "max_positions": 17,
}

ROW_TOKENS = 16  # rows of tiny runs

# neighbours determine every word, so that a small encoder learns the text in seconds
VERSES = (
    "the cat sat on the mat and the dog lay by the door",
    "one day the old fox ran over the green hill to the sea",
    "a small bird sang in the tall tree until the sun went down",
)


def verse_tokenizer() -> Tokenizer:
    """Return a tokenizer with every word of the verses as a token.

    The vocabulary is the stored result of one run, because the trainer breaks ties at random.
    """
    tokenizer = train_word_pieces(VERSES, vocab_size=200)
    pieces = (Path(__file__).parent / "verse_vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer.model = models.WordPiece(vocab=vocabulary, unk_token="[UNK]")  # noqa: S106 - not a password
    return tokenizer


def small_config(**changes: Any) -> EncoderConfig:
    """Return a small configuration of BERT's form, with changed fields."""
    return EncoderConfig(**(SMALL | changes))


def random_encoder(
    config: EncoderConfig, seed: int = 0, classifier: ClassifierConfig | None = None
) -> TiedEncoder:
    """Return an encoder in evaluation mode whose parameters are all random."""
    model = TiedEncoder(config, classifier).eval()
    randomise(model, seed)
    return model


def plan_of(model: TiedEncoder) -> RoundingPlan:
    """Return a rounding plan with random factors and some float32 channels, without a search."""
    generator = torch.Generator().manual_seed(4)
    factors = {VOCABULARY: torch.rand(model.config.table_width, generator=generator) + 0.5}
    for name, module in model.named_modules():
        if is_int8_linear(name, module):
            factors[name] = torch.rand(module.in_features, generator=generator) + 0.5
            if name.endswith((".query", ".ffn_out", ".dense")):
                factors[name][[1, 5]] = 0
        if name in factors:
            factors[name] = factors[shared_input_name(name)]
        if name.endswith(".ffn_out"):
            factors[name] = (factors[name] > 0).float()
    return RoundingPlan(factors)


def randomise(model: nn.Module, seed: int) -> None:
    """Randomise every parameter.

    Entries of a matrix have the variance 1 / columns. Entries of a vector vary around 1 in the
    weights of norms and around 0 in other vectors.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim > 1:
                parameter.copy_(drawn * parameter.shape[1] ** -0.5)
            else:
                is_scale = "norm" in name.lower() and name.endswith("weight")
                parameter.copy_(float(is_scale) + 0.3 * drawn)


def random_ids(shape: tuple[int, ...], below: int, seed: int = 0) -> Tensor:
    """Return integers in [0, below)."""
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed))


def in_float64(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[np.float64]]:
    return {name: tensor.detach().double().numpy() for name, tensor in tensors.items()}


def repetitive_text(documents: int) -> str:
    """Return documents of two lines each, separated by blank lines."""
    lines = (f"{VERSES[i % 3]}\n{VERSES[(i + 1) % 3]}\n" for i in range(documents))
    return "\n".join(lines)


def change_tensors(directory: Path, change: Callable[[dict[str, Tensor]], Any]) -> None:
    """Rewrite the weights of a checkpoint."""
    tensors = load_file(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors")


def change_config(directory: Path, **changes: Any) -> None:
    """Rewrite fields of a checkpoint's config.json. None removes a field."""
    fields = json.loads((directory / "config.json").read_text()) | changes
    kept = {name: value for name, value in fields.items() if value is not None}
    (directory / "config.json").write_text(json.dumps(kept))


def assert_same_weights(first: TiedEncoder, second: TiedEncoder) -> None:
    """Check that the weights of two encoders are equal to the bit."""
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name


def metrics_of(directory: Path) -> list[dict[str, float]]:
    """Return the entries of a run's log."""
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]

"""NeoBERT in float64 NumPy, from its paper (Le Breton et al. 2025) and the form of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def random_weights(config: dict[str, Any], seed: int) -> dict[str, Floats]:
    """Return weights by their published names."""
    draw = np.random.default_rng(seed).standard_normal
    width, vocabulary = config["hidden_size"], config["vocab_size"]
    inner = -(-int(2 * config["intermediate_size"] / 3) // 8) * 8
    shapes: dict[str, tuple[int, ...]] = {"model.encoder.weight": (vocabulary, width)}
    for layer in range(config["num_hidden_layers"]):
        block = f"model.transformer_encoder.{layer}"
        shapes |= {
            f"{block}.qkv.weight": (3 * width, width),
            f"{block}.wo.weight": (width, width),
            f"{block}.ffn.w12.weight": (2 * inner, width),
            f"{block}.ffn.w3.weight": (width, inner),
            f"{block}.attention_norm.weight": (width,),
            f"{block}.ffn_norm.weight": (width,),
        }
    shapes |= {
        "model.layer_norm.weight": (width,),
        "decoder.weight": (vocabulary, width),
        "decoder.bias": (vocabulary,),
    }
    return {name: 0.3 * draw(shape) + (len(shape) == 1) for name, shape in shapes.items()}


def log_probs(config: dict[str, Any], weights: dict[str, Floats], ids: list[int]) -> Floats:
    """Return the log-probabilities (T, V) of one text."""
    heads, eps = config["num_attention_heads"], config["norm_eps"]
    x = weights["model.encoder.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        block = f"model.transformer_encoder.{layer}"

        def weight(name: str, block: str = block) -> Floats:
            return weights[f"{block}.{name}.weight"]

        packed = _normed(x, weight("attention_norm"), eps) @ weight("qkv").T
        query, key, value = np.split(packed.reshape(len(ids), heads, -1), 3, axis=-1)
        scores = np.einsum("qhd,khd->hqk", _turned(query), _turned(key))
        shares = _softmax(scores / np.sqrt(query.shape[-1]))
        mixed = np.einsum("hqk,khd->qhd", shares, value).reshape(len(ids), -1)
        x = x + mixed @ weight("wo").T
        first, second = np.split(_normed(x, weight("ffn_norm"), eps) @ weight("ffn.w12").T, 2, -1)
        x = x + (first / (1 + np.exp(-first)) * second) @ weight("ffn.w3").T
    x = _normed(x, weights["model.layer_norm.weight"], eps)
    logits: Floats = x @ weights["decoder.weight"].T + weights["decoder.bias"]
    return np.log(_softmax(logits))


def _turned(x_THd: Floats) -> Floats:
    """Turn each pair of neighbouring channels, as a complex number, by its position's angle."""
    pairs = x_THd[..., 0::2] + 1j * x_THd[..., 1::2]
    frequencies = 10_000.0 ** -(np.arange(pairs.shape[-1]) / pairs.shape[-1])
    angles = np.arange(len(x_THd))[:, None] * frequencies
    turned = pairs * np.exp(1j * angles)[:, None, :]
    return np.stack([turned.real, turned.imag], -1).reshape(x_THd.shape)


def _normed(x: Floats, scale: Floats, eps: float) -> Floats:
    normed: Floats = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale
    return normed


def _softmax(x: Floats) -> Floats:
    powers: Floats = np.exp(x - x.max(-1, keepdims=True))
    shares: Floats = powers / powers.sum(-1, keepdims=True)
    return shares

"""Independent oracle of the encoder, in float64 NumPy.

The oracle follows the papers and computes one sequence, one head and one query at a time. Sums
leave padding out instead of masking it. The code shares only the configuration classes with
`model`.

Shapes: N batch, T tokens, D d_model, V vocabulary, L labels, M masked positions of the entire
    batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """Weights of the packed pre-norm form: the arguments of `fillmask_model.forward` in float64."""

    w_emb: Floats
    pos_embed: Floats
    blocks_weights: Floats


def packed_logits(
    input_ids: Integers,
    mask_indicator: NDArray[np.float64],
    weights: PackedWeights,
    num_heads: int,
    w_head: Floats,
) -> Floats:
    """Return (M, V) logits of the packed form, with masked positions in row-major order."""
    rows = []
    for ids, indicator in zip(input_ids, mask_indicator, strict=True):
        x = np.stack([weights.w_emb[i] + weights.pos_embed[t] for t, i in enumerate(ids)])
        for w_q, w_k, w_v, w_o, w_mlp1, w_mlp2 in weights.blocks_weights:
            normed = _standardise(x, 1e-5)
            x = x + _attention(normed @ w_q, normed @ w_k, normed @ w_v, num_heads) @ w_o
            x = x + gelu_tanh(_standardise(x, 1e-5) @ w_mlp1) @ w_mlp2
        rows += [x[t] @ w_head for t in range(len(ids)) if indicator[t] > 0.5]
    return np.array(rows).reshape(-1, w_head.shape[1])


def encoder_hidden(
    config: EncoderConfig,
    weights: Mapping[str, Floats],
    ids: Integers,
    token_types: Integers,
) -> Floats:
    """Return the (T, D) last hidden states of one sequence without padding.

    Args:
        weights: the encoder's state_dict in float64.
        ids: (T,) tokens.
        token_types: (T,) types, ignored by an encoder without types.
    """
    norm = _Norms(config, weights)
    x = weights["embeddings.word.weight"][ids] + _positions(config, weights)[: len(ids)]
    if config.type_vocab_size:
        x = x + weights["embeddings.token_type.weight"][token_types]
    if config.embedding_norm:
        x = norm(x, "embeddings.norm")
    for layer in range(config.num_layers):
        x = _block(config, weights, norm, x, f"blocks.{layer}")
    return norm(x, "final_norm") if config.final_norm else x


def encoder_logits(
    config: EncoderConfig, weights: Mapping[str, Floats], hidden: Iterable[Floats]
) -> Floats:
    """Return (M, V) logits of M hidden states, each (D,)."""
    norm = _Norms(config, weights)
    rows = []
    for state in hidden:
        x = state
        if config.head_transform:
            x = norm(_activation(config)(_linear(weights, "head.dense", x)), "head.norm")
        logits = weights["embeddings.word.weight"] @ x
        rows.append(logits + weights["head_bias"] if config.head_bias else logits)
    return np.array(rows)


def label_logits(
    config: EncoderConfig,
    classifier: ClassifierConfig,
    weights: Mapping[str, Floats],
    hidden: Floats,
) -> Floats:
    """Return the (L,) logits of the labels of one sequence with hidden states (T, D)."""
    x = hidden[0] if classifier.pooling == "first" else hidden.mean(0)
    if classifier.activation is not None:
        activations: dict[str, Callable[[Floats], Floats]] = {
            "tanh": np.tanh,
            "relu": lambda y: np.where(y > 0, y, 0),
            "gelu_tanh": gelu_tanh,
            "gelu_erf": gelu_erf,
        }
        x = activations[classifier.activation](_linear(weights, "classifier.dense", x))
    if classifier.norm:
        x = _Norms(config, weights)(x, "classifier.norm")
    return _linear(weights, "classifier.output", x)


def sinusoids(positions: int, width: int) -> Floats:
    """Return the table (positions, width) of sinusoids (Vaswani et al. 2017, section 3.5).

    Column 2i has sin(pos / 10000^(2i/width)). Column 2i + 1 has cos(pos / 10000^(2i/width)).
    """
    table = np.empty((positions, width))
    for pos in range(positions):
        for column in range(width):
            angle = pos / 10_000 ** (2 * (column // 2) / width)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


def gelu_tanh(x: Floats) -> Floats:
    """Compute GELU's tanh approximation (Hendrycks & Gimpel 2016, section 2)."""
    result: Floats = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))
    return result


def gelu_erf(x: Floats) -> Floats:
    """Compute GELU: x times the standard normal distribution function of x."""
    result: Floats = x * (1 + _erf(x / math.sqrt(2))) / 2
    return result


def log_softmax(logits: Floats) -> Floats:
    """Compute the logarithm of the softmax over the last axis."""
    result: Floats = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return result


@dataclass(frozen=True, slots=True)
class _Norms:
    config: EncoderConfig
    weights: Mapping[str, Floats]

    def __call__(self, x: Floats, name: str) -> Floats:
        normed = _standardise(x, self.config.norm_eps)
        if not self.config.norm_affine:
            return normed
        return normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _block(
    config: EncoderConfig, weights: Mapping[str, Floats], norm: _Norms, x: Floats, name: str
) -> Floats:
    def attention(y: Floats) -> Floats:
        q, k, v = (_linear(weights, f"{name}.{part}", y) for part in ("query", "key", "value"))
        return _linear(weights, f"{name}.output", _attention(q, k, v, config.num_heads))

    def feed_forward(y: Floats) -> Floats:
        wide = _activation(config)(_linear(weights, f"{name}.ffn_in", y))
        return _linear(weights, f"{name}.ffn_out", wide)

    parts = ((attention, f"{name}.attention_norm"), (feed_forward, f"{name}.ffn_norm"))
    for part, norm_name in parts:
        if config.norm_placement == "pre":
            x = x + part(norm(x, norm_name))
        else:
            x = norm(x + part(x), norm_name)
    return x


def _attention(q: Floats, k: Floats, v: Floats, num_heads: int) -> Floats:
    """Compute scaled dot-product attention with heads in adjacent columns (Vaswani et al. 2017)."""
    width = q.shape[1] // num_heads
    mixed = np.empty_like(q)
    for head in range(num_heads):
        own = slice(head * width, (head + 1) * width)
        for t in range(len(q)):
            scores = np.array([q[t, own] @ key for key in k[:, own]]) / math.sqrt(width)
            mixed[t, own] = np.exp(log_softmax(scores)) @ v[:, own]
    return mixed


def _standardise(x: Floats, eps: float) -> Floats:
    """Give the last axis zero mean and unit biased variance."""
    result: Floats = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return result


def _linear(weights: Mapping[str, Floats], name: str, x: Floats) -> Floats:
    """Apply a dense layer, whose matrix nn.Linear stores as (out, in)."""
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", np.float64(0))


def _activation(config: EncoderConfig) -> Callable[[Floats], Floats]:
    return {"gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf}[config.activation]


def _positions(config: EncoderConfig, weights: Mapping[str, Floats]) -> Floats:
    if config.positions == "fixed":
        return sinusoids(config.max_positions, config.d_model)
    return weights["embeddings.position.weight"]

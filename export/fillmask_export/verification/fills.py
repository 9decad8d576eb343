"""Verification of a graph against the PyTorch encoder.

`fillmask.engine.runtime` runs the graph, as in production.

Shapes: N texts, T tokens, M masked positions of all texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask.arrays import IntArray
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.text_format import encode_inputs, sample_inputs
from fillmask_model.encoder.encoder import TiedEncoder

MAX_GRAPH_DIFFERENCE = 1e-3  # nats, between log-probabilities of the fp32 graph and PyTorch
TIE = 1e-4  # nats, maximum difference between tokens that may swap ranks
TOP_K = 5
MASKS_PER_TEXT = 3  # more than one mask reveals a wrong order of the outputs
REAL_TEXTS, RANDOM_TEXTS = 24, 12  # maximum number of texts of each kind
INT8_ADVICE = (
    "Export with --precision fp32, or calibrate with text that resembles the training text"
)


class VerificationError(ValueError):
    """Error for a graph whose verification failed."""


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """Comparison of the fp32 graph with PyTorch.

    Attributes:
        texts: number of compared texts and pairs.
        masks: number of compared masks.
        max_log_prob_difference: largest absolute difference over the graph's five top tokens, in
            nats.
        same_top_5: whether the graph and the encoder have the same five top tokens at every mask,
            except for ties within 1e-4 nats.
    """

    texts: int
    masks: int
    max_log_prob_difference: float
    same_top_5: bool


def verification_requests(
    texts: Sequence[str], tokenizer: Tokenizer, vocab_size: int, max_tokens: int, token_types: int
) -> list[ModelPass]:
    """Create passes of real and of random tokens with up to three masks, from a fixed seed.

    Args:
        texts: plain sentences without masks. The function uses the first REAL_TEXTS texts and
            their pairs, except for empty inputs and inputs of more than `max_tokens` tokens.
        vocab_size: upper bound of the random ids, exclusive.
        max_tokens: maximum length of an input in tokens.
        token_types: number of token types of random tokens.
    """
    generator = np.random.default_rng(0)
    samples = sample_inputs(texts[:REAL_TEXTS], tokenizer)
    inputs = [
        (one.input_ids, one.token_types)
        for one in encode_inputs(samples, tokenizer, max_tokens)
        if len(one.input_ids) > 2
    ]
    inputs += random_inputs(vocab_size, max_tokens, token_types, generator)
    requests = []
    for input_ids, types in inputs:
        count = min(int(generator.integers(1, MASKS_PER_TEXT + 1)), len(input_ids))
        positions = np.sort(generator.choice(len(input_ids), count, replace=False))
        masked = input_ids.copy()
        masked[positions] = tokenizer.mask_token_id
        one = ModelPass(masked, positions.astype(np.int64), TOP_K, no_targets(count), types)
        requests.append(one)
    return requests


def random_inputs(
    vocab_size: int, max_tokens: int, token_types: int, generator: np.random.Generator
) -> list[tuple[IntArray, IntArray | None]]:
    """Return random token ids and types of up to RANDOM_TEXTS lengths, from 3 to `max_tokens`.

    Args:
        vocab_size: upper bound of the ids, exclusive.
        max_tokens: maximum length of an input in tokens.
        token_types: number of token types. With 1, the types are None.
    """
    lengths = np.unique(np.geomspace(min(3, max_tokens), max_tokens, RANDOM_TEXTS).astype(int))
    ids = [generator.integers(0, vocab_size, length) for length in lengths]
    if token_types == 1:
        return [(one, None) for one in ids]
    return [(one, generator.integers(0, token_types, len(one))) for one in ids]


def encoder_logits(model: TiedEncoder, requests: Sequence[ModelPass]) -> Tensor:
    """Compute the logits (M, V) of the PyTorch encoder for passes of equal length.

    Either all passes have token types or no pass has token types.
    """
    input_ids_NT = torch.from_numpy(np.stack([request.input_ids for request in requests]))
    indicator_NT = torch.zeros(input_ids_NT.shape)
    for row_T, request in zip(indicator_NT, requests, strict=True):
        row_T[torch.from_numpy(request.mask_positions)] = 1
    types = [request.token_types for request in requests if request.token_types is not None]
    types_NT = torch.from_numpy(np.stack(types)) if types else None
    logits_MV: Tensor = model(input_ids_NT, indicator_NT, None, types_NT)
    return logits_MV


@torch.inference_mode()
def encoder_log_probs(model: TiedEncoder, requests: Sequence[ModelPass]) -> NDArray[np.float32]:
    """Compute the log-probabilities (M, V) of the PyTorch encoder, without padding."""
    parts = [encoder_logits(model, [request]).log_softmax(-1).numpy() for request in requests]
    return np.concatenate(parts)


def compare_graph(
    runtime: Runtime, requests: Sequence[ModelPass], expected_MV: NDArray[np.float32]
) -> GraphFigures:
    """Run all passes as one batch and compare the results with the results of the encoder.

    Raises:
        VerificationError: a log-probability differs by more than 1e-3 nats, or the five top tokens
            of a mask differ, except for ties.
    """
    outputs = runtime.run(Batch.pack(requests))
    at_top = np.take_along_axis(expected_MV, outputs.top_ids, axis=1)
    best = -np.sort(-expected_MV, axis=1)[:, : outputs.top_ids.shape[1]]
    figures = GraphFigures(
        texts=len(requests),
        masks=len(expected_MV),
        max_log_prob_difference=float(np.abs(at_top - outputs.top_log_probs).max()),
        same_top_5=bool((np.abs(at_top - best) <= TIE).all()),
    )
    if not (figures.max_log_prob_difference <= MAX_GRAPH_DIFFERENCE and figures.same_top_5):
        raise VerificationError(
            f"the graph must have the PyTorch encoder's top {TOP_K} tokens with log-probabilities "
            f"that differ by at most {MAX_GRAPH_DIFFERENCE} nats "
            f"(got {'the same' if figures.same_top_5 else 'other'} tokens and a difference of "
            f"{figures.max_log_prob_difference:.2g}); report a bug of the export"
        )
    return figures

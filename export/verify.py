"""What a bundle must show before it is written: agreement with the PyTorch encoder.

The graph runs through `service.runtime`, the code that serves.

Shapes: N texts, T tokens, M masked positions of all texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from model.encoder import TiedEncoder
from service.batch import Batch, Request
from service.runtime import Runtime
from service.tokenizer import Tokenizer

MAX_GRAPH_DIFFERENCE = 1e-3  # of log-probabilities in nats, fp32 graph against PyTorch
TIE = 1e-4  # log-probabilities closer than this may change places
MIN_INT8_AGREEMENT = 0.9  # share of masks with the same first token in int8 and fp32
MAX_INT8_P99 = 0.5  # nats, 99th percentile over the fp32 top 5
TOP_K = 5
MASKS_PER_TEXT = 3
RANDOM_TEXTS = 12


class VerificationError(ValueError):
    """The graph does not compute what the encoder computes."""


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """The fp32 graph against PyTorch.

    Attributes:
        texts, masks: how much was compared.
        max_log_prob_difference: largest absolute difference in nats over the graph's top 5.
        same_top_5: the top 5 are the same everywhere, ties within 1e-4 nats apart.
    """

    texts: int
    masks: int
    max_log_prob_difference: float
    same_top_5: bool


@dataclass(frozen=True, slots=True)
class Int8Figures:
    """int8 arithmetic against PyTorch in fp32, every token of real texts masked in turn.

    Attributes:
        masks: how many were compared.
        top_1_agreement: share of masks with the same first token.
        mean_log_prob_difference: mean |difference| in nats over the fp32 top 5.
        p99_log_prob_difference: its 99th percentile.
    """

    masks: int
    top_1_agreement: float
    mean_log_prob_difference: float
    p99_log_prob_difference: float


def verification_requests(
    texts: Sequence[str], tokenizer: Tokenizer, vocab_size: int, max_tokens: int
) -> list[Request]:
    """Real and random inputs of mixed lengths, one to three masks each, from a fixed seed.

    Args:
        texts: plain sentences without masks; those too long for the model are left out.
        tokenizer: the bundle's.
        vocab_size: random ids are below it.
        max_tokens: length of the longest random input.
    """
    generator = np.random.default_rng(0)
    encoded = [tokenizer.encode(text).input_ids for text in texts]
    inputs = [ids for ids in encoded if 2 < len(ids) <= max_tokens]
    lengths = np.unique(np.geomspace(min(3, max_tokens), max_tokens, RANDOM_TEXTS).astype(int))
    inputs += [generator.integers(0, vocab_size, length) for length in lengths]
    requests = []
    for input_ids in inputs:
        count = min(int(generator.integers(1, MASKS_PER_TEXT + 1)), len(input_ids))
        positions = np.sort(generator.choice(len(input_ids), count, replace=False))
        masked = input_ids.copy()
        masked[positions] = tokenizer.mask_token_id
        no_targets = np.zeros((count, 0), np.int64)
        requests.append(Request(masked, positions.astype(np.int64), TOP_K, no_targets))
    return requests


@torch.inference_mode()
def encoder_log_probs(model: TiedEncoder, requests: Sequence[Request]) -> NDArray[np.float32]:
    """(M, V) log-probabilities of the PyTorch encoder, one text at a time, without padding."""
    parts = []
    for request in requests:
        indicator = torch.zeros(1, len(request.input_ids))
        indicator[0, torch.from_numpy(request.mask_positions)] = 1
        logits = model(torch.from_numpy(request.input_ids)[None], indicator)
        parts.append(torch.log_softmax(logits, dim=-1).numpy())
    return np.concatenate(parts)


def compare_graph(
    runtime: Runtime, requests: Sequence[Request], expected_MV: NDArray[np.float32]
) -> GraphFigures:
    """Run all requests as one mixed batch and compare.

    Raises:
        VerificationError: a log-probability differs by more than 1e-3 nats, or a top 5 differs.
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
            "the graph disagrees with the PyTorch encoder: log-probabilities differ by up to "
            f"{figures.max_log_prob_difference:.2g} nats, "
            f"top 5 {'equal' if figures.same_top_5 else 'not equal'}"
        )
    return figures


def cloze_requests(texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> list[Request]:
    """Each ordinary token of each text masked alone, one request each."""
    requests = []
    for text in texts:
        input_ids = tokenizer.encode(text).input_ids
        if len(input_ids) > max_tokens:
            continue
        for position, token in enumerate(input_ids.tolist()):
            if token not in tokenizer.special_token_ids:
                masked = input_ids.copy()
                masked[position] = tokenizer.mask_token_id
                where = np.array([position], np.int64)
                requests.append(Request(masked, where, TOP_K, np.zeros((1, 0), np.int64)))
    return requests


def compare_int8(
    runtime: Runtime, requests: Sequence[Request], expected_MV: NDArray[np.float32]
) -> Int8Figures:
    """What int8 arithmetic does to the answers.

    Raises:
        VerificationError: too many first tokens differ, or log-probabilities differ too much.
    """
    top_ids = np.argsort(-expected_MV, axis=1)[:, :TOP_K]
    first, found = [], []
    for request, targets in zip(requests, top_ids, strict=True):
        asked = replace(request, target_ids=targets[None])
        outputs = runtime.run(Batch.pack([asked]))
        first.append(outputs.top_ids[0, 0])
        found.append(outputs.target_log_probs[0])
    difference = np.abs(np.array(found) - np.take_along_axis(expected_MV, top_ids, axis=1))
    figures = Int8Figures(
        masks=len(requests),
        top_1_agreement=float((np.array(first) == top_ids[:, 0]).mean()),
        mean_log_prob_difference=float(difference.mean()),
        p99_log_prob_difference=float(np.quantile(difference, 0.99)),
    )
    if not (
        figures.top_1_agreement >= MIN_INT8_AGREEMENT
        and figures.p99_log_prob_difference <= MAX_INT8_P99
    ):
        raise VerificationError(
            f"int8 loses too much: the same first token at {100 * figures.top_1_agreement:.1f} % "
            f"of masks (at least {100 * MIN_INT8_AGREEMENT:.0f} % wanted), 99th percentile of the "
            f"difference {figures.p99_log_prob_difference:.2g} nats (at most {MAX_INT8_P99}); "
            "export with --precision fp32, or calibrate with more text of the model's own kind"
        )
    return figures

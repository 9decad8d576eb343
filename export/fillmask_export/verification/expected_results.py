"""PyTorch's results on the verification texts, for the comparison with graphs.

Shapes: M masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.bundles.bundle import MODEL_FILE, WEIGHTS_FILE
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.progress import Report, no_report
from fillmask_export.text_format import TextFormat
from fillmask_export.verification.agreement import Fp32Predictions, measure_agreement
from fillmask_export.verification.fills import (
    compare_graph,
    encoder_log_probs,
    verification_requests,
)
from fillmask_export.verification.labels import (
    ExpectedLabels,
    compare_label_graph,
    measure_label_agreement,
)
from fillmask_export.verification.vectors import (
    ExpectedVectors,
    compare_vector_graph,
    measure_vector_agreement,
)
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.memory import page_out_files


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedFills:
    """PyTorch's log-probabilities of masks in the verification texts.

    Attributes:
        requests: passes for the fp32 graph.
        log_probs: (M, V) expected log-probabilities.
        predictions: expected predictions of the int8 graph. None for an fp32 bundle.
    """

    requests: Sequence[ModelPass]
    log_probs: NDArray[np.float32]
    predictions: Fp32Predictions | None


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedResults:
    """PyTorch's results for the tasks of a bundle.

    Attributes:
        fills: results of the task fill-mask. None without this task.
        labels: results of the task text-classification. None without this task.
        vectors: results of the task sparse. None without this task.
    """

    fills: ExpectedFills | None
    labels: ExpectedLabels | None
    vectors: ExpectedVectors | None

    @classmethod
    def from_texts(
        cls,
        model: TiedEncoder,
        texts: Sequence[str],
        tokenizer: Tokenizer,
        text_format: TextFormat,
        max_tokens: int,
        *,
        fills: bool,
        sparse: SparsePooling | None = None,
        int8: bool,
        report: Report = no_report,
    ) -> Self:
        """Compute the results of an encoder.

        Args:
            model: fp32 encoder.
            texts: plain sentences without masks.
            text_format: kinds of inputs that the model reads.
            max_tokens: maximum length of an input in tokens.
            fills: whether the bundle fills masks.
            sparse: pooling of a bundle with sparse vectors.
            int8: whether the bundle is in int8.

        Raises:
            VerificationError: the bundle is in int8 or has labels, and no text has at most
                `max_tokens` tokens.
        """
        expected_fills = expected_labels = expected_vectors = None
        types = text_format.token_types
        if fills:
            vocab_size = model.config.vocab_size
            requests = verification_requests(texts, tokenizer, vocab_size, max_tokens, types)
            predictions = None
            if int8:
                predictions = Fp32Predictions.from_texts(
                    model, texts, tokenizer, max_tokens, report
                )
            log_probs = encoder_log_probs(model, requests)
            expected_fills = ExpectedFills(requests, log_probs, predictions)
        if model.classifier is not None:
            expected_labels = ExpectedLabels.from_texts(model, texts, tokenizer, max_tokens, types)
        if sparse is not None:
            expected_vectors = ExpectedVectors.from_texts(
                model, sparse, texts, tokenizer, max_tokens
            )
        return cls(expected_fills, expected_labels, expected_vectors)

    def compare(self, exact: Path, served: Path, report: Report = no_report) -> dict[str, Any]:
        """Compare the fp32 graph and the served graph with the results of PyTorch.

        Args:
            exact: directory of the fp32 graph.
            served: directory of the served graph.

        Returns:
            The verification figures of bundle.json.

        Raises:
            VerificationError: the results differ by more than the limits of the modules beside
                this one.
        """
        figures: dict[str, Any] = {}
        labels: dict[str, Any] = {}
        vectors: dict[str, Any] = {}
        with page_out_files(WEIGHTS_FILE):
            runtime = Runtime(exact / MODEL_FILE, torch.get_num_threads(), pack=exact == served)
            if self.fills is not None:
                graph = compare_graph(runtime, self.fills.requests, self.fills.log_probs)
                figures["graph"] = asdict(graph)
            if self.labels is not None:
                labels["graph"] = asdict(compare_label_graph(runtime, self.labels))
            if self.vectors is not None:
                vectors["graph"] = asdict(compare_vector_graph(runtime, self.vectors))
            del runtime
        if exact != served:
            runtime = Runtime(served / MODEL_FILE, torch.get_num_threads())
            if self.fills is not None and self.fills.predictions is not None:
                agreement = measure_agreement(runtime, self.fills.predictions, report)
                figures["int8"] = asdict(agreement)
            if self.labels is not None:
                labels["int8"] = asdict(measure_label_agreement(runtime, self.labels))
            if self.vectors is not None:
                vectors["int8"] = asdict(measure_vector_agreement(runtime, self.vectors))
        own = {"labels": labels, "vectors": vectors}
        return figures | {name: one for name, one in own.items() if one}

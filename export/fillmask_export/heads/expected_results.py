"""PyTorch's results on the verification texts, for the comparison with graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fillmask.bundles.bundle import MODEL_FILE, WEIGHTS_FILE
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.heads.agreement import Fp32Predictions
from fillmask_export.heads.classify import ExpectedLabels
from fillmask_export.heads.fill_mask import ExpectedFills
from fillmask_export.heads.head import Expected
from fillmask_export.heads.sparse import ExpectedVectors
from fillmask_export.progress import Report, no_report
from fillmask_export.text_format import TextFormat
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.memory import page_out_files

FILLS, LABELS, VECTORS = "", "labels", "vectors"  # fields in the figures of bundle.json


def expected_results(
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
) -> dict[str, Expected]:
    """Compute an encoder's results for the tasks of a bundle, by their fields in the figures.

    Args:
        model: fp32 encoder.
        texts: plain sentences without masks.
        text_format: kinds of inputs that the model reads.
        fills: whether the bundle fills masks.
        sparse: pooling of a bundle with sparse vectors.
        int8: whether the bundle is in int8.

    Raises:
        VerificationError: the bundle is in int8 or has labels, and no text has at most
            `max_tokens` tokens.
    """
    found: dict[str, Expected] = {}
    types = text_format.token_types
    if fills:
        predictions = None
        if int8:
            predictions = Fp32Predictions.from_texts(model, texts, tokenizer, max_tokens, report)
        found[FILLS] = ExpectedFills.from_texts(
            model, texts, tokenizer, max_tokens, types, predictions, report
        )
    if model.classifier is not None:
        found[LABELS] = ExpectedLabels.from_texts(model, texts, tokenizer, max_tokens, types)
    if sparse is not None:
        found[VECTORS] = ExpectedVectors.from_texts(model, sparse, texts, tokenizer, max_tokens)
    return found


def compare(expected: dict[str, Expected], exact: Path, served: Path) -> dict[str, Any]:
    """Compare the fp32 graph and the served graph with the results of PyTorch.

    Args:
        exact: directory of the fp32 graph.
        served: directory of the served graph.

    Returns:
        The verification figures of bundle.json.

    Raises:
        VerificationError: the results differ by more than the limits of the modules beside this
            one.
    """
    with page_out_files(WEIGHTS_FILE):
        runtime = Runtime(exact / MODEL_FILE, torch.get_num_threads(), pack=exact == served)
        figures = {field: {"graph": one.compare(runtime)} for field, one in expected.items()}
        del runtime
    if exact != served:
        runtime = Runtime(served / MODEL_FILE, torch.get_num_threads())
        for field, one in expected.items():
            figures[field]["int8"] = one.measure(runtime)
    return figures.pop(FILLS, {}) | figures

"""From a checkpoint to a verified bundle, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from export.agreement import measure_agreement
from export.golden import golden_prompts
from export.graph import served_graph
from export.int8_operators import Int8GraphBuilder
from export.int8_weights import Int8Weights
from export.operators import GraphBuilder
from export.verify import compare_graph, encoder_log_probs, verification_requests
from export.weights import encoder_weights
from model.calibration import collect_statistics
from model.checkpoint import Checkpoint, CheckpointError
from model.config import EncoderConfig
from model.corpus import SpecialTokens, read_tokenizer
from model.parameters import count_parameters
from model.rounding_plan import RoundingPlan
from service import __version__
from service.bundle import (
    DESCRIPTION_FILE,
    FILES,
    MODEL_FILE,
    SCHEMA_VERSION,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    read_bundle,
)
from service.runtime import Runtime
from service.tokenizer import Tokenizer

# what shapes depend on must lie in the graph itself
SMALLEST_WEIGHT_BYTES = 1024
# tables are rounded up, by far less than this; what lacks more was cut short
MAX_NAMELESS_IDS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleLabel:
    """What a bundle says of itself.

    Attributes:
        name: the model's name.
        license: licence of the weights, as an SPDX expression where one fits.
        description: one sentence.
        max_tokens: longest input, special tokens included; None for all the encoder takes.
        precision: "fp32" or "int8", of weights and arithmetic.
    """

    name: str
    license: str
    description: str
    max_tokens: int | None
    precision: str


@dataclass(frozen=True, slots=True)
class SampleTexts:
    """Real sentences of the model's own kind, none of them in both.

    Attributes:
        verification: for the comparison with PyTorch and for golden prompts.
        calibration: for rounding to int8, where training has not done it.
    """

    verification: Sequence[str]
    calibration: Sequence[str]


def write_bundle(
    checkpoint: Checkpoint, output: Path, label: BundleLabel, texts: SampleTexts
) -> dict[str, Any]:
    """Convert, verify and write.

    Args:
        checkpoint: what to serve.
        output: directory of the bundle; replaced when it is one already.
        label: what the bundle says of itself.
        texts: real sentences.

    Returns:
        The verification figures, as written to bundle.json.

    Raises:
        CheckpointError: the checkpoint cannot be served.
        VerificationError: the graph disagrees with the encoder.
        ValueError: the label or the output does not fit.
    """
    model, config = checkpoint.model, checkpoint.model.config
    checkpoint.require_head()
    if checkpoint.tokenizer_json is None or checkpoint.mask_token is None:
        raise CheckpointError("the checkpoint has no tokenizer.json")
    if output.exists() and not (output / DESCRIPTION_FILE).is_file():
        raise ValueError(f"{output} exists and is not a bundle; it is left as it is")
    max_tokens = label.max_tokens or config.max_positions
    if not 3 <= max_tokens <= config.max_positions:
        raise ValueError(f"max_tokens must lie between 3 and {config.max_positions}")
    mask_token = checkpoint.mask_token
    special = _special_tokens(checkpoint.tokenizer_json, mask_token, config)
    tokenizer = Tokenizer(checkpoint.tokenizer_json, mask_token, special.mask, special.all)

    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".bundle-") as scratch:
        staging = Path(scratch) / output.name
        staging.mkdir()
        weights = encoder_weights(model, max_tokens)
        graph_path = staging / MODEL_FILE
        _save(GraphBuilder(config, weights), graph_path)
        runtime = Runtime(graph_path)
        requests = verification_requests(
            texts.verification, tokenizer, config.vocab_size, max_tokens
        )
        graph_figures = compare_graph(runtime, requests, encoder_log_probs(model, requests))
        figures: dict[str, Any] = {"graph": asdict(graph_figures)}
        if label.precision == "int8":
            encoded = [tokenizer.encode(text).input_ids[:max_tokens] for text in texts.calibration]
            int8 = _int8_weights(checkpoint, encoded, special.mask)
            _save(Int8GraphBuilder(config, weights, int8), graph_path)
            runtime = Runtime(graph_path)
            agreement = measure_agreement(runtime, model, texts.verification, tokenizer, max_tokens)
            figures["int8"] = asdict(agreement)
        (staging / TOKENIZER_FILE).write_bytes(checkpoint.tokenizer_json)
        description = {
            "schema_version": SCHEMA_VERSION,
            "name": label.name,
            "license": label.license,
            "description": label.description,
            "created_with": f"fillmask {__version__}",
            "architecture": _architecture(config),
            "max_tokens": max_tokens,
            "mask_token": mask_token,
            "mask_token_id": special.mask,
            "special_token_ids": list(special.all),
            "precision": label.precision,
            "files": {name: _fingerprint(staging / name) for name in FILES},
            "verification": figures,
            "golden": golden_prompts(
                texts.verification, runtime, tokenizer, max_tokens, label.precision
            ),
        }
        text = json.dumps(description, indent=2, ensure_ascii=False)
        (staging / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")
        read_bundle(staging)
        _replace(staging, output)
    return figures


def _int8_weights(
    checkpoint: Checkpoint, calibration: Sequence[NDArray[np.int64]], mask_token_id: int
) -> Int8Weights:
    if checkpoint.rounding:  # by training: the weights are what int8 can hold
        return Int8Weights(checkpoint.rounding, {})
    statistics = collect_statistics(checkpoint.model, calibration, mask_token_id)
    grams = {name: inputs.gram for name, inputs in statistics.items()}
    return Int8Weights(RoundingPlan.of(checkpoint.model, statistics), grams)


def _save(builder: GraphBuilder, path: Path) -> None:
    graph = served_graph(builder)
    onnx.checker.check_model(graph, full_check=True)
    # onnx would write behind what is there
    (path.parent / WEIGHTS_FILE).unlink(missing_ok=True)
    # the runtime maps a file of weights; of weights within the graph it would make copies
    onnx.save(
        graph,
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=WEIGHTS_FILE,
        size_threshold=SMALLEST_WEIGHT_BYTES,
    )
    # onnx lets nobody but its writer read the weights
    (path.parent / WEIGHTS_FILE).chmod(path.stat().st_mode)


def _special_tokens(tokenizer_json: bytes, mask_token: str, config: EncoderConfig) -> SpecialTokens:
    """The special tokens; among them, rows of the encoder's table that no token has."""
    tokenizer = read_tokenizer(tokenizer_json)
    named = set(tokenizer.get_vocab().values())
    if max(named) >= config.vocab_size:
        raise CheckpointError(
            f"tokenizer.json has {max(named) + 1} tokens, "
            f"more than the encoder's table of {config.vocab_size}"
        )
    nameless = set(range(config.vocab_size)) - named
    if len(nameless) > MAX_NAMELESS_IDS:
        raise CheckpointError(
            f"the tokenizer has {len(named)} tokens and the encoder's table {config.vocab_size} "
            "rows: the vocabulary was cut short"
        )
    special = SpecialTokens.of(tokenizer, mask_token)
    return replace(special, all=tuple(sorted({*special.all, *nameless})))


def _architecture(config: EncoderConfig) -> dict[str, Any]:
    sizes = ("d_model", "num_layers", "num_heads", "d_ff", "vocab_size", "max_positions")
    fields: dict[str, Any] = {name: getattr(config, name) for name in sizes}
    return fields | {"parameters": count_parameters(config).tied, "tied": True}


def _fingerprint(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"sha256": digest, "bytes": file.stat().st_size}


def _replace(staging: Path, output: Path) -> None:
    """Put the new files in place of the old ones; what else lies beside them stays."""
    if not output.exists():
        staging.rename(output)
        return
    for name in (*FILES, DESCRIPTION_FILE):
        shutil.move(staging / name, output / name)

"""Export of a checkpoint to a verified bundle."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fillmask import __version__
from fillmask.bundles.bundle import (
    DESCRIPTION_FILE,
    FILES,
    MODEL_FILE,
    SCHEMA_VERSION,
    TOKENIZER_FILE,
    Bundle,
    read_bundle,
)
from fillmask.bundles.validation import check_name
from fillmask.engine.machine.native_operators import OperatorsUnavailableError
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.bundle.description_fields import (
    architecture_fields,
    classification_fields,
    file_fields,
    sparse_fields,
    special_tokens,
)
from fillmask_export.bundle.fused_graph import add_fused_graph
from fillmask_export.bundle.output import check_output, replace_bundle
from fillmask_export.graph.files import save_graph
from fillmask_export.progress import Report, no_report
from fillmask_export.quantization.weights import int8_weights
from fillmask_export.text_format import TextFormat
from fillmask_export.verification.expected_results import ExpectedResults
from fillmask_export.verification.golden import golden_results, write_description
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.memory import page_out_files


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleMetadata:
    """Fields of bundle.json that the user of the export chooses.

    Attributes:
        license: licence of the weights, if possible as an SPDX expression.
        description: one sentence about the model.
        max_tokens: maximum length of an input in tokens, special tokens included. None for the
            maximum length of the encoder.
        precision: precision of weights and arithmetic, "fp32" or "int8".
    """

    name: str
    license: str
    description: str
    max_tokens: int | None
    precision: str


@dataclass(frozen=True, slots=True)
class SampleTexts:
    """Real sentences that resemble the model's training text.

    The two lists must not share sentences.

    Attributes:
        verification: sentences for the comparison with PyTorch, golden prompts and golden texts.
        calibration: sentences for rounding to int8. The export does not use these sentences if
            training has rounded the weights.
    """

    verification: Sequence[str]
    calibration: Sequence[str]


def write_bundle(
    checkpoint: Checkpoint,
    output: Path,
    metadata: BundleMetadata,
    texts: SampleTexts,
    *,
    compensate: bool = True,
    overwrite: bool = False,
    report: Report = no_report,
) -> dict[str, Any]:
    """Convert a checkpoint, verify the graph and write the bundle.

    Args:
        output: directory of the bundle.
        compensate: whether later columns of a weight compensate for the errors of rounding earlier
            columns to int8. Without compensation, each weight becomes the nearest value, which is
            faster and less accurate.
        overwrite: whether the new bundle may replace an existing bundle.
        report: function that receives the progress of an export in int8.

    Returns:
        The verification figures of bundle.json. If this machine cannot make the fused graph, the
        reason has the name `not_fused`.

    Raises:
        CheckpointError: the checkpoint has no trained head, or its tokenizer is missing or does not
            match the encoder.
        VerificationError: the results of the graph differ from the results of the encoder.
        ValueError: the metadata or the output directory is invalid, or no text for verification has
            at most `max_tokens` tokens.
    """
    config = checkpoint.model.config
    tasks, sparse = checkpoint.tasks, checkpoint.sparse
    if not tasks:
        checkpoint.require_head()
    if sparse is not None:
        checkpoint.model.classifier = None  # the graph has no labels
    if checkpoint.tokenizer_json is None or checkpoint.mask_token is None:
        raise CheckpointError("the checkpoint has no tokenizer; add tokenizer.json")
    check_name(metadata.name)
    check_output(output, overwrite=overwrite)
    max_tokens = metadata.max_tokens
    if max_tokens is None:
        max_tokens = config.max_positions
    if not 3 <= max_tokens <= config.max_positions:
        raise ValueError(f"max_tokens must be from 3 to {config.max_positions} (got {max_tokens})")
    tokenizer_json, mask_token = checkpoint.tokenizer_json, checkpoint.mask_token
    special = special_tokens(tokenizer_json, mask_token, config)
    text_format = TextFormat(pairs=False, token_types=1)
    if sparse is None:
        text_format = TextFormat.from_tokenizer(tokenizer_json, mask_token, config)
    tokenizer = Tokenizer(
        tokenizer_json, mask_token, special.mask, special.all, **asdict(text_format)
    )
    head = checkpoint.model.classifier
    classification = None if head is None else classification_fields(head.config)
    architecture = architecture_fields(config, head, fills=tasks != ("text-classification",))

    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".bundle-") as scratch:
        staging = Path(scratch) / output.name
        exact = Path(scratch) / "fp32" if metadata.precision == "int8" else staging
        fills = "fill-mask" in tasks
        expected = ExpectedResults.from_texts(
            checkpoint.model,
            texts.verification,
            tokenizer,
            text_format,
            max_tokens,
            fills=fills,
            sparse=None if sparse is None else sparse.pooling,
            int8=metadata.precision == "int8",
            report=report,
        )
        calibration = [tokenizer.encode(text).input_ids[:max_tokens] for text in texts.calibration]
        save = partial(
            save_graph,
            checkpoint.model,
            max_tokens,
            fills=fills,
            sparse=None if sparse is None else sparse.pooling,
            token_types=text_format.token_types,
        )
        save(exact)
        if metadata.precision == "int8":
            int8 = int8_weights(
                checkpoint,
                calibration,
                special.mask,
                Path(scratch) if compensate else None,
                fills=fills,
                sparse=sparse is not None,
                report=report,
            )
            with page_out_files(".safetensors"):
                save(staging, int8)
            del int8
        # free the PyTorch model, so that it is not in memory at the same time as the runtimes
        del checkpoint, head, save
        figures = expected.compare(exact, staging, report)
        (staging / TOKENIZER_FILE).write_bytes(tokenizer_json)
        runtime = Runtime(staging / MODEL_FILE)
        description = {
            "schema_version": SCHEMA_VERSION,
            "name": metadata.name,
            "license": metadata.license,
            "description": metadata.description,
            "created_with": f"fillmask {__version__}",
            "architecture": architecture,
            "max_tokens": max_tokens,
            "mask_token": mask_token,
            "mask_token_id": special.mask,
            "special_token_ids": list(special.all),
            "precision": metadata.precision,
            "tasks": list(tasks),
            **asdict(text_format),
            "classification": classification,
            "sparse": None if sparse is None else sparse_fields(sparse),
            "files": {name: file_fields(staging / name) for name in FILES},
            "verification": figures,
            "golden": golden_results(
                texts.verification,
                runtime,
                tokenizer,
                max_tokens,
                figures,
                None if classification is None else classification["pooling"],
            ),
        }
        write_description(description, staging / DESCRIPTION_FILE)
        del runtime
        fused = _add_fused_graph(read_bundle(staging), texts.verification)
        replace_bundle(staging, output)
    return figures | fused


def _add_fused_graph(bundle: Bundle, texts: Sequence[str]) -> dict[str, Any]:
    """Add the fused graph and return its figures, or the reason why this machine cannot make it."""
    try:
        figures = add_fused_graph(bundle, texts)
    except OperatorsUnavailableError as error:
        return {"not_fused": str(error)}
    return {} if figures is None else {"fused": asdict(figures)}

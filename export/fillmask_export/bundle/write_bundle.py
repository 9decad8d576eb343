"""Export of a checkpoint to a verified bundle."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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
from fillmask.bundles.description import SpecialTokens
from fillmask.bundles.validation import check_name
from fillmask.engine.linux.native_operators import OperatorsUnavailableError
from fillmask.engine.runtime import Runtime
from fillmask_export.bundle.description_fields import (
    architecture_fields,
    file_fields,
    write_description,
)
from fillmask_export.bundle.fused_graph import add_fused_graph
from fillmask_export.bundle.output import check_output, replace_bundle
from fillmask_export.bundle.reading import Reading
from fillmask_export.graph.served import save_graph
from fillmask_export.heads.samples import Samples
from fillmask_export.heads.tasks import compare, golden_results, heads_of
from fillmask_export.quantization.weights import int8_weights
from fillmask_export.sample_texts import GivenTexts, SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.files import naming_a_full_disk
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
        special_tokens: how texts with special tokens other than the mask are read, "literal",
            "read" or "refuse". None refuses them if the tokenizer has tokens such as "[E1]", whose
            only place is in a text, else they are literal.
    """

    name: str
    license: str
    description: str
    max_tokens: int | None
    precision: str
    special_tokens: SpecialTokens | None = None


def write_bundle(
    checkpoint: Checkpoint,
    output: Path,
    metadata: BundleMetadata,
    texts: SampleTexts | GivenTexts,
    *,
    compensate: bool = True,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Convert a checkpoint, verify the graph and write the bundle.

    Args:
        output: directory of the bundle.
        compensate: whether later columns of a weight compensate for the errors of rounding earlier
            columns to int8. Without compensation, each weight becomes the nearest value, which is
            faster and less accurate.
        overwrite: whether the new bundle may replace an existing bundle.

    Returns:
        The verification figures of bundle.json, and as `notes` what else the user should know. If
        this machine cannot make the fused graph, the reason has the name `not_fused`.

    Raises:
        CheckpointError: the checkpoint has no trained head, or its tokenizer is missing or does not
            match the encoder.
        VerificationError: the results of the graph differ from the results of the encoder.
        ValueError: the metadata or the output directory is invalid, no text for verification has
            at most `max_tokens` tokens, or int8 has only texts that the model can't read.
    """
    if not checkpoint.tasks:
        checkpoint.require_head()
    check_name(metadata.name)
    check_output(output, overwrite=overwrite)
    int8 = metadata.precision == "int8"
    reading = Reading.of_checkpoint(
        checkpoint,
        texts,
        max_tokens=metadata.max_tokens,
        special=metadata.special_tokens,
        int8=int8,
    )
    tokenizer, max_tokens = reading.tokenizer, reading.max_tokens
    heads = heads_of(checkpoint)
    description = {
        "schema_version": SCHEMA_VERSION,
        "name": metadata.name,
        "license": metadata.license,
        "description": metadata.description,
        "created_with": f"fillmask {__version__}",
        "architecture": architecture_fields(checkpoint),
        "precision": metadata.precision,
        "tasks": list(checkpoint.tasks),
        **reading.fields,
        "classification": None,
        "sparse": None,
    }
    for head in heads:
        description |= head.description()
    samples = Samples(
        texts=reading.texts.verification,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        token_types=reading.fields["token_types"],
        vocab_size=checkpoint.model.config.vocab_size,
        int8=int8,
        pooling=(description["classification"] or {}).get("pooling", "first"),
    )

    output.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=output.parent, prefix=".bundle-") as scratch,
        naming_a_full_disk(output),
    ):
        staging = Path(scratch) / output.name
        exact = Path(scratch) / "fp32" if int8 else staging
        expected = {head.field: head.expect(checkpoint.model, samples) for head in heads}
        save = partial(save_graph, checkpoint.model, heads, max_tokens, samples.token_types)
        save(exact)
        if int8:
            # only smoothing needs them: with all 210, agreement is the same and the export takes
            # 16 % longer (BERT-base, measured on 2026-11-26)
            lines = reading.texts.calibration[:: 1 if compensate else 2]
            calibration = [tokenizer.encode(text).input_ids[:max_tokens] for text in lines]
            grams = Path(scratch) if compensate else None
            weights = int8_weights(checkpoint, calibration, tokenizer.mask_token_id, grams)
            with page_out_files(".safetensors"):
                save(staging, weights)
            del weights
        # free the PyTorch model, so that it is not in memory at the same time as the runtimes
        del checkpoint, save
        figures = compare(expected, exact, staging)
        figures["tokens"] = reading.figures
        (staging / TOKENIZER_FILE).write_bytes(reading.tokenizer_json)
        golden = golden_results(samples, Runtime(staging / MODEL_FILE), figures)
        description["files"] = {name: file_fields(staging / name) for name in FILES}
        description |= {"verification": figures, "golden": golden}
        write_description(description, staging / DESCRIPTION_FILE)
        fused = _add_fused_graph(read_bundle(staging), samples.texts)
        replace_bundle(staging, output)
    return figures | fused | ({"notes": reading.notes} if reading.notes else {})


def _add_fused_graph(bundle: Bundle, texts: Sequence[str]) -> dict[str, Any]:
    """Add the fused graph and return its figures, or the reason why this machine cannot make it."""
    try:
        figures = add_fused_graph(bundle, texts)
    except OperatorsUnavailableError as error:
        return {"not_fused": str(error)}
    return {} if figures is None else {"fused": figures}

"""From a checkpoint to a verified bundle, written whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from export.agreement import Fp32Answers, measure_agreement
from export.golden import golden_prompts, write_description
from export.graph_files import int8_weights, save_graph
from export.verify import compare_graph, encoder_log_probs, verification_requests
from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.data.corpus import SpecialTokens, read_tokenizer
from model.encoder.config import EncoderConfig
from model.encoder.counting import count_parameters
from model.encoder.encoder import TiedEncoder
from model.memory import paged_out
from service import __version__
from service.bundles.bundle import (
    DESCRIPTION_FILE,
    FILES,
    MODEL_FILE,
    SCHEMA_VERSION,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    read_bundle,
)
from service.engine.batch import ModelPass
from service.engine.runtime import Runtime
from service.tokenization.tokenizer import Tokenizer

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
    config = checkpoint.model.config
    checkpoint.require_head()
    if checkpoint.tokenizer_json is None or checkpoint.mask_token is None:
        raise CheckpointError("the checkpoint has no tokenizer.json")
    if output.exists() and not (output / DESCRIPTION_FILE).is_file():
        raise ValueError(f"{output} exists and is not a bundle; it is left as it is")
    max_tokens = label.max_tokens or config.max_positions
    if not 3 <= max_tokens <= config.max_positions:
        raise ValueError(f"max_tokens must lie between 3 and {config.max_positions}")
    tokenizer_json, mask_token = checkpoint.tokenizer_json, checkpoint.mask_token
    special = _special_tokens(tokenizer_json, mask_token, config)
    tokenizer = Tokenizer(tokenizer_json, mask_token, special.mask, special.all)

    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".bundle-") as scratch:
        staging = Path(scratch) / output.name
        exact = Path(scratch) / "fp32" if label.precision == "int8" else staging
        expected = _Expected.of(checkpoint.model, texts, tokenizer, max_tokens, label.precision)
        calibration = [tokenizer.encode(text).input_ids[:max_tokens] for text in texts.calibration]
        save_graph(checkpoint.model, max_tokens, exact)
        if label.precision == "int8":
            int8 = int8_weights(checkpoint, calibration, special.mask)
            with paged_out(".safetensors"):
                save_graph(checkpoint.model, max_tokens, staging, int8)
            del int8
        # PyTorch has said what it has to say: what runs the graphs need not fit in beside it
        del checkpoint
        figures = expected.compare(exact, staging)
        (staging / TOKENIZER_FILE).write_bytes(tokenizer_json)
        runtime = Runtime(staging / MODEL_FILE)
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
            "golden": golden_prompts(texts.verification, runtime, tokenizer, max_tokens, figures),
        }
        write_description(description, staging / DESCRIPTION_FILE)
        read_bundle(staging)
        _replace(staging, output)
    return figures


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    """What PyTorch says to the texts that a bundle is verified with.

    Attributes:
        requests: for the fp32 graph.
        log_probs: what it must say.
        answers: for the graph in int8; None where the bundle is in fp32.
    """

    requests: Sequence[ModelPass]
    log_probs: NDArray[np.float32]
    answers: Fp32Answers | None

    @classmethod
    def of(
        cls,
        model: TiedEncoder,
        texts: SampleTexts,
        tokenizer: Tokenizer,
        max_tokens: int,
        precision: str,
    ) -> Self:
        requests = verification_requests(
            texts.verification, tokenizer, model.config.vocab_size, max_tokens
        )
        answers = None
        if precision == "int8":
            answers = Fp32Answers.of(model, texts.verification, tokenizer, max_tokens)
        return cls(requests, encoder_log_probs(model, requests), answers)

    def compare(self, exact: Path, served: Path) -> dict[str, Any]:
        """The graph in fp32, and the one to be served, in the directories where they lie."""
        with paged_out(WEIGHTS_FILE):
            runtime = Runtime(exact / MODEL_FILE, pack=exact == served)
            graph = compare_graph(runtime, self.requests, self.log_probs)
            del runtime
        figures: dict[str, Any] = {"graph": asdict(graph)}
        if self.answers is not None:
            figures["int8"] = asdict(measure_agreement(Runtime(served / MODEL_FILE), self.answers))
        return figures


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

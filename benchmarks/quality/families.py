"""Agreement with transformers, size and speed of each checkpoint family, for docs/models.md.

    .venv-comparison/bin/python -m benchmarks.quality.families [NAME ...]

The script downloads no model. The models have published configurations and sizes, but random
weights. A separate process per family compares fillmask with transformers on the same weights,
texts and CPUs. The texts have the lengths and masks of the comparison's texts. The script needs 8
GB of memory and a quiet machine.

Shapes: M masks, V vocabulary.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from benchmarks import generated_block
from benchmarks.comparison.in_process.throughput import Job, drive
from benchmarks.comparison.machine import describe
from benchmarks.comparison.process import output_of
from benchmarks.comparison.texts import masked_texts
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.host import usable_cpus
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.graph.files import save_graph
from fillmask_export.quantization.weights import int8_weights
from fillmask_model.checkpoints.checkpoint import load_checkpoint

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
COMPARED_TEXTS, CALIBRATION_TEXTS = 48, 60
TOP_K = 5
BATCH_TOKENS = 192
SECONDS = 5.0
LIMIT_S = 1800
_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1}
# by name in the table: prefix of transformers' classes, and the published values that differ
# from the defaults of transformers
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT base": ("Bert", {}),
    "DistilBERT": ("DistilBert", {}),
    "RoBERTa base": ("Roberta", {"vocab_size": 50265, "layer_norm_eps": 1e-5, **_ROBERTA}),
    "CamemBERT base": ("Camembert", {"vocab_size": 32005, "layer_norm_eps": 1e-5, **_ROBERTA}),
    "XLM-RoBERTa base": ("XLMRoberta", {"vocab_size": 250002, "layer_norm_eps": 1e-5, **_ROBERTA}),
    "ALBERT base": (
        "Albert",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    "ELECTRA small generator": ("Electra", {}),
    "MPNet base": ("MPNet", {"max_position_embeddings": 514, "layer_norm_eps": 1e-5}),
    "ESM-2, 35 M": (
        "Esm",
        {
            "vocab_size": 33,
            "hidden_size": 480,
            "num_hidden_layers": 12,
            "num_attention_heads": 20,
            "intermediate_size": 1920,
            "max_position_embeddings": 1026,
            "layer_norm_eps": 1e-5,
            "position_embedding_type": "rotary",
            "token_dropout": True,
            "mask_token_id": 32,
            "pad_token_id": 1,
        },
    ),
    "ModernBERT base": ("ModernBert", {}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Measurements of one family.

    Attributes:
        parameters: number of parameters. Shared parameters count once.
        fp32_difference: largest absolute difference from transformers' log-probabilities, in nats.
        int8_difference: 99th percentile of the difference over transformers' top 5, in nats.
        int8_agreement: share of masks with the same top token as transformers.
        fp32_mb: size of the fp32 graph and weights.
        int8_mb: size of the int8 graph and weights.
        fp32_texts_s: throughput of fillmask in fp32 with one thread per CPU.
        int8_texts_s: throughput of fillmask in int8 with one thread per CPU.
        transformers_texts_s: throughput of transformers with one text at a time on all CPUs.
    """

    parameters: int
    fp32_difference: float
    int8_difference: float
    int8_agreement: float
    fp32_mb: float
    int8_mb: float
    fp32_texts_s: float
    int8_texts_s: float
    transformers_texts_s: float


def main() -> None:
    """Print the measurements and write them to docs/models.md."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(asdict(measure(sys.argv[2]))))
        return
    cpus = sorted(os.sched_getaffinity(0))
    rows = {}
    for name in sys.argv[1:] or MODELS:
        line = output_of(
            "benchmarks.quality.families", ["--one", name], cpus, LIMIT_S
        ).splitlines()[-1]
        rows[name] = row(name, Figures(**json.loads(line)))
        print(rows[name], flush=True)
        write(rows, describe(cpus, cpus)[0])


def write(rows: Mapping[str, str], machine: str) -> None:
    """Replace the rows of the measured models in the page."""
    old = generated_block.read(PAGE, "quality/families")
    known = {line.split(" | ")[0].strip("| "): line for line in old.splitlines()}
    lines = [rows.get(name, known.get(name)) for name in MODELS]
    table = "\n".join([*HEAD, *(line for line in lines if line)])
    generated_block.write(PAGE, "quality/families", f"{table}\n\n{machine}")


COLUMNS = (
    "parameters",
    "fp32: largest difference",
    "int8: p99 difference, same first token",
    "MB fp32, int8",
    "texts/s fp32, int8",
    "transformers texts/s",
    "int8 / transformers",
)
HEAD = (f"| model | {' | '.join(COLUMNS)} |", f"| --- |{' --: |' * len(COLUMNS)}")


def row(name: str, of: Figures) -> str:
    """Format a row of the table."""
    return (
        f"| {name} | {of.parameters / 1e6:.0f} M | {of.fp32_difference:.0e} "
        f"| {of.int8_difference:.3f}, {100 * of.int8_agreement:.1f} % "
        f"| {of.fp32_mb:.0f}, {of.int8_mb:.0f} | {of.fp32_texts_s:.0f}, {of.int8_texts_s:.0f} "
        f"| {of.transformers_texts_s:.1f} | {of.int8_texts_s / of.transformers_texts_s:.1f}x |"
    )


def measure(name: str) -> Figures:
    """Measure one family in this process."""
    kind, fields = MODELS[name]
    torch.manual_seed(0)
    theirs = getattr(transformers, f"{kind}ForMaskedLM")(
        getattr(transformers, f"{kind}Config")(**fields)
    ).eval()
    _spread(theirs)
    requests = _requests(theirs.config)
    compared = requests[:COMPARED_TEXTS]
    expected = np.concatenate([_log_probs(theirs, request) for request in compared])
    jobs: list[Job] = [(1, partial(_log_probs, theirs, request)) for request in requests]
    transformers_texts_s = drive(jobs, 1, SECONDS)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        theirs.save_pretrained(directory / "checkpoint")
        parameters = theirs.num_parameters()
        del theirs, jobs
        checkpoint = load_checkpoint(directory / "checkpoint")
        tokens = min(512, checkpoint.model.config.max_positions)
        texts = [request.input_ids for request in requests[-CALIBRATION_TEXTS:]]
        mask = int(compared[0].input_ids[compared[0].mask_positions[0]])
        save_graph(checkpoint.model, tokens, directory / "fp32")
        int8 = int8_weights(checkpoint, texts, mask, directory)
        save_graph(checkpoint.model, tokens, directory / "int8", int8)
        del checkpoint, int8
        fp32, quick = (Runtime(directory / p / "model.onnx") for p in ("fp32", "int8"))
        exact, rounded = (_ours(runtime, compared, expected) for runtime in (fp32, quick))
        best = expected.argsort(axis=1)[:, -TOP_K:]
        difference = np.abs(np.take_along_axis(rounded - expected, best, axis=1))
        return Figures(
            parameters=parameters,
            fp32_difference=float(np.abs(exact - expected).max()),
            int8_difference=float(np.quantile(difference, 0.99)),
            int8_agreement=float((rounded.argmax(1) == expected.argmax(1)).mean()),
            fp32_mb=_size_mb(directory / "fp32"),
            int8_mb=_size_mb(directory / "int8"),
            fp32_texts_s=_texts_s(fp32, requests),
            int8_texts_s=_texts_s(quick, requests),
            transformers_texts_s=transformers_texts_s,
        )


def _spread(model: Any) -> None:
    """Set random weights with the variance of trained weights.

    With the initial weights, the predictions of all masks are the same.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
            elif "norm" not in name.lower():
                torch.nn.init.normal_(parameter, std=0.1)


def _requests(config: Any) -> list[ModelPass]:
    """Create passes of random tokens with the lengths and masks of the comparison's texts."""
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    generator = np.random.default_rng(0)
    mask = getattr(config, "mask_token_id", None) or config.vocab_size - 1
    requests = []
    for text in masked_texts():
        encoded = tokenizer.encode(text)
        ids = generator.integers(5, config.vocab_size - 1, len(encoded.input_ids))
        ids[encoded.mask_positions] = mask
        positions = encoded.mask_positions
        requests.append(ModelPass(ids, positions, TOP_K, no_targets(len(positions))))
    return requests


@torch.inference_mode()
def _log_probs(model: Any, request: ModelPass) -> NDArray[np.float32]:
    """Return transformers' log-probabilities (M, V) at the masks of a text."""
    logits = model(input_ids=torch.from_numpy(request.input_ids)[None]).logits[0]
    log_probs: NDArray[np.float32] = logits[request.mask_positions].log_softmax(-1).numpy()
    return log_probs


def _ours(
    runtime: Runtime, requests: list[ModelPass], expected: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return fillmask's log-probabilities (M, V) at the masks of all texts."""
    every = np.arange(expected.shape[1])
    parts = []
    for r in requests:
        targets = np.tile(every, (len(r.mask_positions), 1))
        batch = Batch.pack([ModelPass(r.input_ids, r.mask_positions, 1, targets)])
        parts.append(runtime.run(batch).target_log_probs)
    return np.concatenate(parts)


def _texts_s(runtime: Runtime, requests: list[ModelPass]) -> float:
    batches: list[list[ModelPass]] = [[]]
    for request in requests:
        if sum(r.tokens for r in batches[-1]) + request.tokens > BATCH_TOKENS and batches[-1]:
            batches.append([])
        batches[-1].append(request)

    def run(batch: list[ModelPass]) -> object:
        packed = Batch.pack(batch)
        return packed.unpack(runtime.run(packed))

    jobs: list[Job] = [(len(batch), partial(run, batch)) for batch in batches]
    return drive(jobs, usable_cpus(), SECONDS)


def _size_mb(directory: Path) -> float:
    return sum(file.stat().st_size for file in directory.iterdir()) / 1e6


if __name__ == "__main__":
    main()

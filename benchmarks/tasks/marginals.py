"""Time of the masked marginals of a protein, for docs/scoring.md.

    .venv-dev/bin/python -m benchmarks.tasks.marginals

The model has the size of ESM-2 8M and random weights, which do not affect the speed. transformers
computes one position per run, on all CPUs. The contenders take turns on a quiet machine.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import EsmConfig, EsmForMaskedLM, EsmTokenizer

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.page import median_ratio
from benchmarks.tasks.checkpoints import OURS, bundle_of, export, serving

PAGE = Path(__file__).parents[2] / "docs" / "scoring.md"
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
ALPHABET = [
    *("<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-", "<null_1>"),
    "<mask>",
]
RESIDUES, ROUNDS = 200, 5
TOLERANCE = 1e-4  # log-probabilities in fp32 against transformers, in nats
THEIRS = "transformers, one position per run"
Table = NDArray[np.float32]


def main() -> None:
    """Measure the contenders in turns and write the table to the page."""
    protein = "".join(random.Random(0).choices(AMINO_ACIDS, k=RESIDUES))  # noqa: S311 - no secret
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as servers:
        directory = Path(scratch) / "esm2"
        model, tokenizer = make_checkpoint(directory)
        contenders: dict[str, Callable[[], Table]] = {
            THEIRS: lambda: one_by_one(model, tokenizer, protein)
        }
        for name in OURS:
            export(directory, name, *proteins(directory, protein))
            url, _ = servers.enter_context(serving(bundle_of(directory, name)))
            contenders[name] = lambda url=url: over_http(url, protein)  # type: ignore[misc]
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        tables = {name: compute() for name, compute in contenders.items()}  # and a warm-up
        for _ in range(ROUNDS):
            for name, compute in contenders.items():
                start_s = time.perf_counter()
                compute()
                seconds[name].append(time.perf_counter() - start_s)
    differences = {name: float(np.abs(tables[name] - tables[THEIRS]).max()) for name in contenders}
    if differences[OURS[1]] > TOLERANCE:
        raise SystemExit(f"log-probabilities in fp32 differ by {differences[OURS[1]]}")
    cpus = sorted(os.sched_getaffinity(0))
    rows = [
        [
            name,
            f"{statistics.median(own):.2f}",
            f"{median_ratio(seconds[THEIRS], own):.1f}x",
            f"{differences[name]:.0e}",
        ]
        for name, own in seconds.items()
    ]
    header = ("contender", "seconds", "transformers / this", "largest difference")
    block = f"{generated_block.table(header, rows)}\n\n{hardware(cpus, cpus)[0]}"
    print(block)
    generated_block.write(PAGE, "tasks/marginals", block)


def make_checkpoint(directory: Path) -> tuple[Any, Any]:
    """Write a random model of the size of ESM-2 8M."""
    torch.manual_seed(0)
    config = EsmConfig(
        vocab_size=len(ALPHABET),
        hidden_size=320,
        num_hidden_layers=6,
        num_attention_heads=20,
        intermediate_size=1280,
        max_position_embeddings=1026,
        position_embedding_type="rotary",
        token_dropout=True,
        mask_token_id=ALPHABET.index("<mask>"),
        pad_token_id=ALPHABET.index("<pad>"),
        layer_norm_eps=1e-5,
    )
    model: Any = EsmForMaskedLM(config)
    model.eval()
    for parameter in model.parameters():  # initial weights give all positions the same results
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    model.save_pretrained(directory)
    (directory / "vocab.txt").write_text("\n".join(ALPHABET))
    make_tokenizer: Any = EsmTokenizer
    tokenizer = make_tokenizer(str(directory / "vocab.txt"))
    tokenizer.save_pretrained(directory)
    return model, tokenizer


def proteins(directory: Path, protein: str) -> list[str]:
    """Write proteins as texts of the export, and return its options."""
    draw = random.Random(1)  # noqa: S311 - no secret
    for name in ("texts", "calibration"):
        texts = ["".join(draw.sample(protein, RESIDUES)) for _ in range(40)]
        (directory / f"{name}.txt").write_text("\n".join(texts))
    texts_file, calibration = directory / "texts.txt", directory / "calibration.txt"
    return ["--texts", str(texts_file), "--calibrate", str(calibration)]


def over_http(url: str, protein: str) -> Table:
    """Return the log-probabilities (R, 20) of one request."""
    body = {"inputs": protein, "parameters": {"targets": list(AMINO_ACIDS)}}
    score = httpx.post(f"{url}/score", json=body, timeout=60).raise_for_status().json()
    return np.array([token["target_log_probs"] for token in score["tokens"]], np.float32)


@torch.inference_mode()
def one_by_one(model: Any, tokenizer: Any, protein: str) -> Table:
    """Return the log-probabilities (R, 20) of transformers."""
    ids = tokenizer(protein, return_tensors="pt")["input_ids"]
    columns = tokenizer.convert_tokens_to_ids(list(AMINO_ACIDS))
    rows = []
    for place in range(1, ids.shape[1] - 1):
        masked = ids.clone()
        masked[0, place] = tokenizer.mask_token_id
        logits = model(input_ids=masked).logits[0, place]
        rows.append(logits.log_softmax(-1)[columns].numpy())
    return np.stack(rows)


if __name__ == "__main__":
    main()

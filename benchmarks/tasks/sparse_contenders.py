"""A contender of benchmarks.tasks.sparse, which encodes all documents per line of standard input.

python -m benchmarks.tasks.sparse_contenders NAME MODEL DOCUMENTS
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCHES = (4, 8, 16, 32)  # batch sizes, of which each contender takes the fastest


def main() -> None:
    """Answer each line with the seconds that all documents take."""
    name, model, documents = sys.argv[1:]
    texts = json.loads(Path(documents).read_text(encoding="utf-8"))
    size = 0
    if name.startswith("fillmask"):
        encode = _fillmask(model)
    else:
        backend = name.removeprefix("Sentence Transformers, ")
        encode = _all_logits(model) if backend == name else _sentence_transformers(model, backend)
        encode(texts, BATCHES[0])
        size = min(BATCHES, key=lambda one: _seconds(encode, texts, one))
    for _ in sys.stdin:
        print(_seconds(encode, texts, size), flush=True)


def _seconds(encode: Callable[[list[str], int], object], texts: list[str], size: int) -> float:
    start_s = time.perf_counter()
    encode(texts, size)
    return time.perf_counter() - start_s


def _fillmask(model: str) -> Callable[[list[str], int], object]:
    from fillmask import FillMask

    opened = FillMask(model)
    return lambda texts, _: opened.embed_sparse(texts)


def _sentence_transformers(model: str, backend: Any) -> Callable[[list[str], int], object]:
    """Use Sentence Transformers. The backend "onnx int8" rounds weights for VNNI instructions."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.backend import export_dynamic_quantized_onnx_model

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    kind, _, precision = backend.partition(" ")
    encoder = SparseEncoder(model, backend=kind, device="cpu")
    if precision:
        rounded = f"{model}-{precision}"
        encoder.save_pretrained(rounded)
        export_dynamic_quantized_onnx_model(encoder, "avx512_vnni", rounded)
        [file] = Path(rounded).rglob("*qint8_avx512_vnni.onnx")
        options = {"file_name": file.name}
        encoder = SparseEncoder(rounded, backend=kind, device="cpu", model_kwargs=options)
    return lambda texts, size: encoder.encode(texts, batch_size=size, show_progress_bar=False)


def _all_logits(model: str) -> Callable[[list[str], int], object]:
    """Take all logits out of an onnxruntime graph, as fastembed does."""
    import numpy as np
    import onnxruntime
    from optimum.onnxruntime import ORTModelForMaskedLM
    from transformers import AutoTokenizer

    exported = Path(model) / "all-logits"
    ORTModelForMaskedLM.from_pretrained(model, export=True).save_pretrained(exported)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(
        str(exported / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    names = [one.name for one in session.get_inputs()]
    tokenizer = AutoTokenizer.from_pretrained(model)

    def encode(texts: list[str], size: int) -> object:
        vectors = []
        for start in range(0, len(texts), size):
            inputs = tokenizer(texts[start : start + size], padding=True, return_tensors="np")
            inputs.setdefault("token_type_ids", np.zeros_like(inputs["input_ids"]))
            [logits] = session.run(None, {name: inputs[name].astype(np.int64) for name in names})
            weights = np.log1p(np.maximum(logits, 0))
            weights *= inputs["attention_mask"][:, :, None]
            for row in weights.max(axis=1):
                indices = row.nonzero()[0]
                vectors.append((indices, row[indices]))
        return vectors

    return encode


if __name__ == "__main__":
    main()

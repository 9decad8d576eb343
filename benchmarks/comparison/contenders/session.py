"""FastAPI application with a thread pool for onnxruntime, OpenVINO or CTranslate2.

This project's code tokenizes the text and fills the masks, because it is faster than the pipeline's
code. The contenders with this server therefore differ only in the runtime and the graph.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.contenders.app import serve
from benchmarks.comparison.contenders.ctranslate2 import HEADS, CTranslate2Engine
from benchmarks.comparison.contenders.engine import Engine
from benchmarks.comparison.contenders.onnxruntime import OnnxRuntimeEngine
from benchmarks.comparison.contenders.openvino import OpenVinoEngine
from benchmarks.comparison.workspace import Workspace
from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer


def fills(
    tokenizer: Tokenizer, text: str, encoded: EncodedText, logits_MV: FloatArray, top_k: int
) -> Any:
    """Return the fills of one text in Hugging Face's format."""
    answer = []
    for mask, row_V in enumerate(logits_MV):
        best = np.argpartition(row_V, -top_k)[-top_k:]
        best = best[np.argsort(-row_V[best])]
        shifted_V = row_V - row_V[best[0]]
        scores = np.exp(shifted_V[best]) / np.exp(shifted_V).sum()
        answer.append(
            [
                {
                    "score": score,
                    "token": token,
                    "token_str": tokenizer.token_str(token),
                    "sequence": tokenizer.mask_slot(text, encoded, mask).fill(token)[1],
                }
                for token, score in zip(best.tolist(), scores.tolist(), strict=True)
            ]
        )
    return answer[0] if len(answer) == 1 else answer


def main() -> None:
    """Load the graph and serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", required=True)
    parser.add_argument(
        "--graph", required=True, type=Path, help="graph, or directory of CTranslate2's encoder"
    )
    parser.add_argument(
        "--engine", required=True, choices=("onnxruntime", "openvino", "ctranslate2")
    )
    parser.add_argument("--head", choices=HEADS, help="library of CTranslate2's head")
    parser.add_argument(
        "--precision", default="f32", help="floating-point precision of OpenVINO, f32 or bf16"
    )
    parser.add_argument("--runs", required=True, type=int)
    parser.add_argument("--threads", default=1, type=int, help="number of threads per run")
    parser.add_argument(
        "--spinning", action="store_true", help="let idle threads of onnxruntime spin"
    )
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    tokenizer = Workspace(options.size).tokenizer()
    engine: Engine
    if options.engine == "onnxruntime":
        engine = OnnxRuntimeEngine(options.graph, options.threads, spinning=options.spinning)
    elif options.engine == "ctranslate2":
        engine = CTranslate2Engine(
            options.graph, "int8", options.head, options.runs, options.threads
        )
    else:
        threads = options.runs * options.threads
        engine = OpenVinoEngine(options.graph, options.precision, options.runs, threads)

    def fill(text: str, top_k: int) -> Any:
        encoded = tokenizer.encode(text)
        return fills(tokenizer, text, encoded, engine.logits([encoded]), top_k)

    serve(fill, runs=options.runs, port=options.port)


if __name__ == "__main__":
    main()

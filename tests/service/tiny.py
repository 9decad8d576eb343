"""Tiny model made in code, its bundle, and an oracle for its results.

Logits are weighted sums over the tokens of a text, so that a result reveals its text.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    *["paris", "rome", "is", "was", "the", "a", "capital", "city", "of", "france", "italy"],
    *["dog", "cat", "barked", "at", "mailman", "she", "drank", "cup", "tea", "water", "run"],
    *["walk", "##s", "##ing", ".", ",", "!", "?", "[", "]", "mask", "sep", "cls", "(", ")", "'"],
    *["-", "and"],
]
VOCABULARY = [*SPECIAL, *WORDS]
MASK_ID = VOCABULARY.index("[MASK]")
MAX_TOKENS = 32
GOLDEN_TEXTS = ["Paris is the [MASK] of France.", "The [MASK] barked at the [MASK]."]


@dataclass(frozen=True)
class Tiny:
    """Bundle, vocabulary and oracle of the tiny model."""

    path: Path
    vocabulary: list[str]
    word_table: NDArray[np.float32]  # (V, V)
    position_table: NDArray[np.float32]  # (T, V)

    def log_probs(self, input_ids: list[int], mask_position: int) -> NDArray[np.float64]:
        """Return (V,) log-probabilities at a mask, in float64 and without a batch."""
        ids = np.array(input_ids)
        weights_T = 0.5 + 0.1 * np.arange(len(ids))
        rows_TV = self.word_table[ids].astype(np.float64) * weights_T[:, None]
        logits_V = rows_TV.sum(axis=0) + rows_TV[mask_position]
        logits_V += self.position_table[mask_position]
        shifted_V = logits_V - logits_V.max()
        log_probs: NDArray[np.float64] = shifted_V - np.log(np.exp(shifted_V).sum())
        return log_probs

    def best(self, input_ids: list[int], mask_position: int, top_k: int) -> list[tuple[int, float]]:
        """Return the ids of the most likely ordinary tokens with their log-probabilities."""
        log_probs_V = self.log_probs(input_ids, mask_position)
        ranked = [i for i in np.argsort(-log_probs_V).tolist() if i >= len(SPECIAL)]
        return [(i, float(log_probs_V[i])) for i in ranked[:top_k]]


def build_tokenizer() -> Tokenizer:
    """Return a WordPiece tokenizer like BERT's.

    The tokenizer truncates and pads, which the service must not do.
    """
    vocabulary = {token: i for i, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of another kind
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    return tokenizer


def build_pair_tokenizer() -> Tokenizer:
    """Return the tokenizer with a template for pairs of texts."""
    tokenizer = build_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def build_graph(word_table: NDArray[np.float32], position_table: NDArray[np.float32]) -> Any:
    """Return a bag-of-words model that meets the served graph's contract.

    Every input of the graph affects its outputs.
    """
    constants: dict[str, NDArray[Any]] = {
        "words": word_table,
        "places": position_table,
        "half": np.array(0.5, dtype=np.float32),
        "tenth": np.array(0.1, dtype=np.float32),
        "axis_1": np.array([1], dtype=np.int64),
        "axis_2": np.array([2], dtype=np.int64),
        "flat": np.array([-1, len(VOCABULARY)], dtype=np.int64),
    }
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["word_RV"]),
        node("Cast", ["positions"], ["position_R"], to=TensorProto.FLOAT),
        node("Mul", ["position_R", "tenth"], ["tenths_R"]),
        node("Add", ["tenths_R", "half"], ["weight_R"]),
        node("Unsqueeze", ["weight_R", "axis_1"], ["weight_R1"]),
        node("Mul", ["word_RV", "weight_R1"], ["weighted_RV"]),
        node("Gather", ["weighted_RV", "pad_index"], ["padded_BWV"]),
        node("Unsqueeze", ["query_texts", "axis_2"], ["query_texts_BQ1"]),
        node("Unsqueeze", ["slot_texts", "axis_1"], ["slot_texts_B1W"]),
        node("Equal", ["query_texts_BQ1", "slot_texts_B1W"], ["same_text_BQW"]),
        node("Cast", ["same_text_BQW"], ["weight_BQW"], to=TensorProto.FLOAT),
        node("MatMul", ["weight_BQW", "padded_BWV"], ["text_BQV"]),
        node("Reshape", ["padded_BWV", "flat"], ["slots"]),
        node("Gather", ["slots", "unpad_index"], ["row_RV"]),
        node("Gather", ["places", "positions"], ["place_RV"]),
        node("Add", ["row_RV", "place_RV"], ["hidden_RV"]),
        node("Gather", ["hidden_RV", "query_index"], ["query_BQV"]),
        node("Add", ["query_BQV", "text_BQV"], ["sum_BQV"]),
        node("Reshape", ["sum_BQV", "flat"], ["queries"]),
        node("Gather", ["queries", "mask_slots"], ["logits_MV"]),
        node("LogSoftmax", ["logits_MV"], ["log_probs_MV"], axis=1),
        node("TopK", ["log_probs_MV", "top_k"], ["top_log_probs", "top_ids"], axis=1),
        node("GatherElements", ["log_probs_MV", "target_ids"], ["target_log_probs"], axis=1),
    ]
    integers: dict[str, list[str | int | None]] = {
        "input_ids": ["R"],
        "positions": ["R"],
        "pad_index": ["B", "W"],
        "slot_texts": ["B", "W"],
        "unpad_index": ["R"],
        "query_index": ["B", "Q"],
        "query_texts": ["B", "Q"],
        "mask_slots": ["M"],
        "top_k": [1],
        "target_ids": ["M", "K"],
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(n, TensorProto.INT64, s) for n, s in integers.items()],
        [
            helper.make_tensor_value_info("top_ids", TensorProto.INT64, ["M", "k"]),
            helper.make_tensor_value_info("top_log_probs", TensorProto.FLOAT, ["M", "k"]),
            helper.make_tensor_value_info("target_log_probs", TensorProto.FLOAT, ["M", "K"]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10)


def describe_files(path: Path) -> dict[str, dict[str, Any]]:
    """Return the sizes and hashes of files for bundle.json."""
    return {
        name: {
            "sha256": hashlib.sha256((path / name).read_bytes()).hexdigest(),
            "bytes": (path / name).stat().st_size,
        }
        for name in ("model.onnx", "weights.bin", "tokenizer.json")
    }


def write_bundle(path: Path) -> Tiny:
    """Write the bundle of the tiny model, with golden fills from the oracle."""
    rng = np.random.default_rng(7)
    size = len(VOCABULARY)
    words = rng.normal(size=(size, size)).astype(np.float32)
    places = rng.normal(size=(MAX_TOKENS, size)).astype(np.float32)
    tiny = Tiny(path, VOCABULARY, words, places)
    path.mkdir(parents=True)
    onnx.save(
        build_graph(words, places),
        path / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
    )
    tokenizer = build_tokenizer()
    tokenizer.save(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    prompts = []
    for text in GOLDEN_TEXTS:
        ids = tokenizer.encode(text).ids
        masks = [i for i, token in enumerate(ids) if token == MASK_ID]
        fills = [
            [{"token": token, "log_prob": log_prob} for token, log_prob in tiny.best(ids, mask, 5)]
            for mask in masks
        ]
        prompts.append({"text": text, "fills": fills})
    bundle = {
        "schema_version": 2,
        "name": "tiny",
        "license": "Apache-2.0",
        "description": "A bag of words.",
        "created_with": "fillmask 0.1.0",
        "architecture": {
            "d_model": size,
            "num_layers": 1,
            "num_heads": 1,
            "d_ff": size,
            "vocab_size": size,
            "max_positions": MAX_TOKENS,
            "parameters": words.size + places.size,
            "tied": True,
        },
        "max_tokens": MAX_TOKENS,
        "mask_token": "[MASK]",
        "mask_token_id": MASK_ID,
        "special_token_ids": list(range(len(SPECIAL))),
        "precision": "fp32",
        "files": describe_files(path),
        "verification": {"max_abs_log_prob_difference": 1e-6, "cases": [1, 2], "by": "hand"},
        "golden": {"log_prob_tolerance": 1e-4, "prompts": prompts},
    }
    (path / "bundle.json").write_text(json.dumps(bundle))
    return tiny

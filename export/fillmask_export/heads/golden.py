"""Golden prompts and golden texts of a bundle, with the expected results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fillmask.bundles.bundle import DESCRIPTION_FILE, Bundle, read_bundle
from fillmask.bundles.description import Pooling
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tasks.golden import largest_int8_difference
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.heads.head import all_too_long
from fillmask_model.files import atomic_replace

# Maximum number of golden prompts and of texts with golden labels. 16 prompts have enough masks for
# the mean difference to distinguish saturating int8 kernels from the rounding of another CPU.
TEXTS = 16
PAIR_INTERVAL = 4  # a quarter of the inputs of a model that reads pairs are pairs
PLACES = (1 / 4, 1 / 2, 3 / 4)  # relative positions of the masks in a text
LEAST_WORDS = 7  # shorter texts have one mask in the middle
WEIGHTS = 20  # largest weights of a sparse vector
FILLS = 5  # fills per mask, as in the comparison of int8 with fp32
# Other CPUs add numbers in another order. The unit is nats for fills. For labels the tolerance is a
# difference of logits, relative to the largest logit if that is above 1.
FP32_TOLERANCE = 2e-3


def _tolerance(int8: dict[str, Any] | None, p99: str, largest: float = 0.0) -> float:
    """Return the maximum allowed difference of a golden number.

    Args:
        int8: figures of a bundle in int8, with the field `p99`.
        largest: largest absolute number of a bundle in fp32.
    """
    if int8 is not None:
        return largest_int8_difference(int8[p99])
    return FP32_TOLERANCE * max(1.0, largest)


def golden_results(
    texts: Sequence[str],
    runtime: Runtime,
    tokenizer: Tokenizer,
    max_tokens: int,
    figures: dict[str, Any],
    pooling: Pooling | None,
    vocab_size: int,
) -> dict[str, Any]:
    """Create the `golden` field of bundle.json.

    Args:
        texts: plain sentences without masks. The function skips inputs of more than `max_tokens`
            tokens.
        runtime: runtime with the bundle's graph.
        figures: verification figures of the bundle.
        pooling: pooling of the classification head. None for a bundle without labels.
        vocab_size: number of rows of the embedding table.

    Raises:
        ValueError: no text has at most `max_tokens` tokens.
    """
    golden: dict[str, Any] = {"prompts": []}
    if "fill-mask" in runtime.tasks:
        int8 = figures.get("int8")
        golden["log_prob_tolerance"] = _tolerance(int8, "p99_log_prob_difference")
        golden["prompts"] = [
            {**_fields(text), "fills": _fills(encoded, runtime, tokenizer, vocab_size)}
            for text, encoded in _inputs(texts, tokenizer, max_tokens, masked=True)
        ]
    if pooling is not None:
        labels: list[dict[str, Any]] = [
            {**_fields(text), "logits": _labels(encoded, runtime, pooling)}
            for text, encoded in _inputs(texts, tokenizer, max_tokens, masked=False)
        ]
        largest = max(abs(logit) for one in labels for logit in one["logits"])
        int8 = figures["labels"].get("int8")
        golden["logit_tolerance"] = _tolerance(int8, "p99_logit_difference", largest)
        golden["labels"] = labels
    if "sparse" in runtime.tasks:
        golden["vectors"] = [
            {"text": text, "weights": weights}
            for text, encoded in _inputs(texts, tokenizer, max_tokens, masked=False)
            if isinstance(text, str) and (weights := _weights(encoded, runtime))
        ]
        largest = max(one["weights"][0]["weight"] for one in golden["vectors"])
        int8 = figures["vectors"].get("int8")
        golden["weight_tolerance"] = _tolerance(int8, "p99_weight_difference", largest)
    return golden


def golden_of(bundle: Bundle, runtime: Runtime, texts: Sequence[str]) -> dict[str, Any]:
    """Return the golden results of a graph of a bundle."""
    head = bundle.classification
    return golden_results(
        texts,
        runtime,
        Tokenizer.from_bundle(bundle),
        bundle.max_tokens,
        dict(bundle.verification),
        None if head is None else head.pooling,
        bundle.architecture.vocab_size,
    )


def renew_golden_results(path: Path, texts: Sequence[str]) -> int:
    """Replace the golden prompts and golden texts of a bundle by results on this machine.

    The function changes only bundle.json.

    Args:
        path: directory of a bundle whose results on this machine are correct.
        texts: plain sentences without masks.

    Returns:
        The number of golden prompts and golden texts.

    Raises:
        BundleError: the bundle is invalid.
        ValueError: no text fits into the maximum length of the bundle.
    """
    bundle = read_bundle(path)
    golden = golden_of(bundle, Runtime(bundle.model_path), texts)
    file = path / DESCRIPTION_FILE
    description = json.loads(file.read_text(encoding="utf-8"))
    write_description(description | {"golden": golden}, file)
    return sum(len(golden.get(name, ())) for name in ("prompts", "labels", "vectors"))


def write_description(description: dict[str, Any], file: Path) -> None:
    text = json.dumps(description, indent=2, ensure_ascii=False)
    with atomic_replace(file) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _inputs(
    texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int, *, masked: bool
) -> list[tuple[InputText, EncodedText]]:
    """Return the inputs of golden prompts or of golden texts, with their tokens.

    Args:
        texts: plain sentences without masks.
        masked: whether to mask some words of each text, for golden prompts.

    Raises:
        ValueError: no text has at most `max_tokens` tokens.
    """
    found: list[tuple[InputText, EncodedText]] = []
    for index, text in enumerate(texts):
        one = _mask_words(text, tokenizer.mask_token) if masked else text
        options: list[InputText] = [one]
        if tokenizer.reads_pairs and index % PAIR_INTERVAL == 1 and index + 1 < len(texts):
            options = [TextPair(one, texts[index + 1]), one]
        encoded = [(option, tokenizer.encode(option)) for option in options]
        found += [(o, tokens) for o, tokens in encoded if len(tokens.input_ids) <= max_tokens][:1]
        if len(found) == TEXTS:
            break
    if not found:
        raise all_too_long(max_tokens)
    return found


def _labels(encoded: EncodedText, runtime: Runtime, pooling: Pooling) -> list[float]:
    request = ModelPass.for_labels(encoded.input_ids, encoded.token_types, pooling)
    [logits] = runtime.run(Batch.pack([request])).label_logits.tolist()
    return [round(logit, 5) for logit in logits]


def _weights(encoded: EncodedText, runtime: Runtime) -> list[dict[str, Any]]:
    """Return the largest weights of the sparse vector of a text, largest first."""
    request = ModelPass.for_vector(encoded.input_ids, encoded.token_types, WEIGHTS)
    batch = Batch.pack([request])
    [output] = batch.unpack(runtime.run(batch))
    assert output.vector is not None  # noqa: S101 - the graph has vectors
    pairs = zip(output.vector.indices.tolist(), output.vector.values.tolist(), strict=True)
    ranked = sorted(pairs, key=lambda one: -one[1])
    return [{"token": token, "weight": round(weight, 5)} for token, weight in ranked]


def _fields(text: InputText) -> dict[str, str]:
    return {"text": text} if isinstance(text, str) else asdict(text)


def _mask_words(text: str, mask_token: str) -> str:
    words = text.split()
    for place in PLACES if len(words) >= LEAST_WORDS else (1 / 2,):
        words[int(place * len(words))] = mask_token
    return " ".join(words)


def _fills(
    encoded: EncodedText, runtime: Runtime, tokenizer: Tokenizer, vocab_size: int
) -> list[list[dict[str, Any]]]:
    masks = len(encoded.mask_positions)
    top_k = min(FILLS + len(tokenizer.special_token_ids), vocab_size)
    request = ModelPass(
        encoded.input_ids, encoded.mask_positions, top_k, no_targets(masks), encoded.token_types
    )
    outputs = runtime.run(Batch.pack([request]))
    return [
        [
            {"token": token, "log_prob": round(log_prob, 5)}
            for token, log_prob in zip(tokens, log_probs, strict=True)
            if token not in tokenizer.special_token_ids
        ][:FILLS]
        for tokens, log_probs in zip(
            outputs.top_ids.tolist(), outputs.top_log_probs.tolist(), strict=True
        )
    ]

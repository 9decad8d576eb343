"""Golden prompts of a bundle, which are texts with the expected fills."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from service.bundles.bundle import DESCRIPTION_FILE, read_bundle
from service.engine.batch_arrays import Batch
from service.engine.passes import ModelPass, no_targets
from service.engine.runtime import Runtime
from service.registry.golden import largest_int8_difference
from service.tokenization.tokenizer import Tokenizer

# enough masks for the mean difference to distinguish saturating int8 kernels from the rounding of
# another CPU
PROMPTS = 16
PLACES = (1 / 4, 1 / 2, 3 / 4)  # relative positions of the masks in a text
LEAST_WORDS = 7  # shorter texts have one mask in the middle
FILLS = 5  # fills per mask, as in the comparison of int8 with fp32
FP32_TOLERANCE = 2e-3  # nats, because other CPUs add numbers in another order


def log_prob_tolerance(figures: dict[str, Any]) -> float:
    """Return the maximum allowed difference of a golden prompt's log-probability, in nats."""
    if "int8" not in figures:
        return FP32_TOLERANCE
    return largest_int8_difference(figures["int8"]["p99_log_prob_difference"])


def golden_prompts(
    texts: Sequence[str],
    runtime: Runtime,
    tokenizer: Tokenizer,
    max_tokens: int,
    figures: dict[str, Any],
) -> dict[str, Any]:
    """Create the `golden` field of bundle.json.

    Args:
        texts: plain sentences without masks. The function skips texts of more than `max_tokens`
            tokens.
        runtime: runtime with the bundle's graph.
        tokenizer: tokenizer of the bundle.
        max_tokens: maximum length of an input in tokens.
        figures: verification figures of the bundle.

    Raises:
        ValueError: all texts are too long.
    """
    prompts: list[dict[str, Any]] = []
    for text in texts:
        prompt = _masked(text, tokenizer.mask_token)
        fills = _fills(prompt, runtime, tokenizer, max_tokens)
        if fills:
            prompts.append({"text": prompt, "fills": fills})
        if len(prompts) == PROMPTS:
            break
    if not prompts:
        raise ValueError(
            f"all verification texts have more than {max_tokens} tokens; "
            "give shorter ones with --texts"
        )
    return {"log_prob_tolerance": log_prob_tolerance(figures), "prompts": prompts}


def renew_golden_prompts(path: Path, texts: Sequence[str]) -> int:
    """Renew a bundle's golden prompts with its fills on this machine.

    Only bundle.json changes.

    Args:
        path: directory of a bundle whose fills on this machine are correct.
        texts: plain sentences without masks.

    Returns:
        The number of prompts.

    Raises:
        BundleError: the bundle is invalid.
        ValueError: all texts are too long.
    """
    bundle = read_bundle(path)
    runtime, tokenizer = Runtime(bundle.model_path), Tokenizer.from_bundle(bundle)
    golden = golden_prompts(texts, runtime, tokenizer, bundle.max_tokens, dict(bundle.verification))
    file = path / DESCRIPTION_FILE
    description = json.loads(file.read_text(encoding="utf-8"))
    write_description(description | {"golden": golden}, file)
    return len(golden["prompts"])


def write_description(description: dict[str, Any], file: Path) -> None:
    """Write bundle.json."""
    text = json.dumps(description, indent=2, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def _masked(text: str, mask_token: str) -> str:
    words = text.split()
    for place in PLACES if len(words) >= LEAST_WORDS else (1 / 2,):
        words[int(place * len(words))] = mask_token
    return " ".join(words)


def _fills(
    prompt: str, runtime: Runtime, tokenizer: Tokenizer, max_tokens: int
) -> list[list[dict[str, Any]]]:
    """Return the top ordinary tokens of each mask.

    Returns:
        One list of fills per mask, or an empty list if the text is too long.
    """
    encoded = tokenizer.encode(prompt)
    masks = len(encoded.mask_positions)
    if len(encoded.input_ids) > max_tokens:
        return []
    top_k = FILLS + len(tokenizer.special_token_ids)
    request = ModelPass(encoded.input_ids, encoded.mask_positions, top_k, no_targets(masks))
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

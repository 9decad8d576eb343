"""Agreement of int8 with fp32 for a small trained model of each family.

    .venv-dev/bin/python -m benchmarks.quality.trained_families [FAMILY ...]

The script downloads no model. It makes published configurations small and trains each model for a
minute to copy: each text has random words twice, and a mask's word stands in the other half. With
random weights int8 changes the best token much more often, because their first and second token
have almost the same probability.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoConfig

from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.registry import find_family
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.published.shrinking import Sizes, shrink

CONFIGS = Path(__file__).parents[2] / "tests" / "published" / "configs"
SIZES = Sizes(heads=4, head_width=32, layers=4, inner=512)
WORDS = [first + second for first in "abcdefghijklmn" for second in "abcdefghijklmn"]
HALF = 15  # words in half of a text
TEXTS, CALIBRATION, VERIFICATION = 20_000, 60, 200
MAX_STEPS, LAST_STEPS, LEARNED = 4000, 200, 0.8
BATCH, PEAK, WARM_UP = 16, 1e-3, 100
MASK = "[MASK]"
# published configuration by family. transformers has default configurations of the other two.
PUBLISHED = {
    "bert": "google-bert/bert-base-uncased",
    "distilbert": "distilbert/distilbert-base-uncased",
    "roberta": "FacebookAI/roberta-base",
    "camembert": "almanach/camembert-base",
    "xlm-roberta": "FacebookAI/xlm-roberta-base",
    "albert": "albert/albert-base-v2",
    "electra": "monologg/koelectra-base-v2-generator",
    "mpnet": "microsoft/mpnet-base",
    "esm": "facebook/esm2_t6_8M_UR50D",
    "modernbert": "answerdotai/ModernBERT-base",
    "ernie": "nghuyong/ernie-3.0-base-zh",
    "data2vec-text": "facebook/data2vec-text-base",
    "megatron-bert": "IDEA-CCNL/Erlangshen-MegatronBert-3.9B-Chinese",
    "roberta-prelayernorm": "andreasmadsen/efficient_mlm_m0.30",
    "xlm-roberta-xl": "facebook/xlm-roberta-xl",
    "nomic_bert": "nomic-ai/nomic-embed-text-v1",
    "gte": "Snowflake/snowflake-arctic-embed-m-v2.0",
    "new": "Alibaba-NLP/gte-base-en-v1.5",
    "eurobert": "EuroBERT/EuroBERT-210m",
    "ultrabert": "",
    "neobert": "chandar-lab/NeoBERT",
    "esmc": "",
}


def main() -> None:
    """Print the figures."""
    generator = random.Random(0)  # noqa: S311 - choices, not secrets
    texts = [" ".join(generator.choices(WORDS, k=HALF) * 2) for _ in range(TEXTS)]
    tokenizer = train_word_pieces(texts, 2 * len(WORDS))
    rows = torch.tensor([encoding.ids for encoding in tokenizer.encode_batch(texts)])
    mask_id = tokenizer.get_vocab()[MASK]
    print("| model_type | accuracy | int8: same first token | int8: mean difference |")
    print("| --- | --: | --: | --: |")
    for family in sys.argv[1:] or PUBLISHED:
        torch.manual_seed(0)
        model = small_model(family, tokenizer.get_vocab_size(), mask_id)
        accuracy = train(model, rows[CALIBRATION + VERIFICATION :], mask_id)
        checkpoint = Checkpoint(
            model, tokenizer.to_str().encode(), head_is_new=False, mask_token=MASK
        )
        print(f"{family}: {100 * accuracy:.0f} % accuracy", file=sys.stderr)
        figures = int8_figures(checkpoint, texts)
        share, difference = figures["top_1_agreement"], figures["mean_log_prob_difference"]
        row = f"| {family} | {100 * accuracy:.0f} % | {100 * share:.1f} % | {difference:.4f} |"
        print(row, flush=True)


def small_model(family: str, vocabulary: int, mask_id: int) -> TiedEncoder:
    """Return an encoder with initial weights."""
    if name := PUBLISHED[family]:
        file = CONFIGS / f"{name.replace('/', '--')}.json"
        config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["config"]
    else:
        config = AutoConfig.for_model(family).to_dict()
    ids = {"pad_token_id": 0, "mask_token_id": mask_id}
    small = shrink(config, vocabulary, ids, SIZES)
    return TiedEncoder(find_family(small, name)[1].read(Fields(small)).config)


def train(model: TiedEncoder, rows: Tensor, mask_id: int) -> float:
    """Train on rows (R, T) with random masks until the model copies most words.

    Returns:
        The accuracy at the masks of the last steps.
    """
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK)
    right: list[float] = []
    left = LAST_STEPS  # of the decay after the model has learned to copy
    for step in range(MAX_STEPS):
        if left < LAST_STEPS or _mean(right) > LEARNED or step >= MAX_STEPS - LAST_STEPS:
            left -= 1
        for group in optimizer.param_groups:
            group["lr"] = PEAK * min((step + 1) / WARM_UP, left / LAST_STEPS)
        ids = rows[torch.randint(len(rows), (BATCH,), generator=generator)]
        masks = torch.rand(ids.shape, generator=generator) < 0.15
        masks[:, 1] = True
        logits = model(ids.masked_fill(masks, mask_id), masks.float())
        loss = functional.cross_entropy(logits, ids[masks])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # untyped function
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right = [*right[-49:], float((logits.argmax(-1) == ids[masks]).float().mean())]
        if not left:
            break
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
    return _mean(right)


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def int8_figures(checkpoint: Checkpoint, texts: list[str]) -> dict[str, float]:
    """Export an int8 bundle and return the figures of its verification."""
    calibration, verification = texts[:CALIBRATION], texts[CALIBRATION:][:VERIFICATION]
    metadata = BundleMetadata(
        name="small", license="", description="", max_tokens=None, precision="int8"
    )
    samples = SampleTexts(calibration=calibration, verification=verification)
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch) / "bundle"
        figures: dict[str, float] = write_bundle(checkpoint, bundle, metadata, samples)["int8"]
    return figures


if __name__ == "__main__":
    main()

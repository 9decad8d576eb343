"""Parameter counts, compared with real modules and published numbers."""

from __future__ import annotations

from typing import Any

import pytest

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import count_parameters
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.samples import small_config

FIFTY_THOUSAND_WORDS = EncoderConfig(
    vocab_size=50_001,
    d_model=200,
    num_layers=4,
    num_heads=2,
    d_ff=200,
    max_positions=512,
    type_vocab_size=0,
    embedding_norm=False,
    attention_bias=False,
    ffn_bias="input",
    positions="fixed",
    head_transform=False,
    head_bias=False,
)

GPT_2 = EncoderConfig(
    vocab_size=50_257,
    d_model=768,
    num_layers=12,
    num_heads=12,
    d_ff=3072,
    max_positions=1024,
    type_vocab_size=0,
    norm_placement="pre",
    embedding_norm=False,
    final_norm=True,
    activation="gelu_tanh",
    head_transform=False,
    head_bias=False,
)

BERT_BASE = EncoderConfig(
    vocab_size=30_522, d_model=768, num_layers=12, num_heads=12, d_ff=3072, max_positions=512
)


@pytest.mark.parametrize("tied", [True, False])
def test_parts_of_every_kind_add_up(*, tied: bool) -> None:
    config = small_config(
        embedding_size=8, query_key_norm=True, relative_buckets=4, tied=tied, final_norm=True
    )
    classifier = ClassifierConfig(labels=("a", "b"), norm=True)
    model, count = TiedEncoder(config, classifier), count_parameters(config, classifier)
    table = 0 if tied else model.embeddings.word.weight.numel()
    assert count.tied + count.labels == sum(p.numel() for p in model.parameters()) - table


# labels, parameters of the tied encoder, and of the encoder with only the classification head
PUBLISHED = {
    "50,001 tokens": (FIFTY_THOUSAND_WORDS, None, 20_964_400 - 10_000_200, 10_964_602),
    "GPT-2": (GPT_2, None, 124_439_808, 124_439_808 + 2 * 769),
    "BERT base": (BERT_BASE, "tanh", 109_514_298, 109_483_778),
}


@pytest.mark.parametrize(
    ("config", "activation", "tied", "classifier"), PUBLISHED.values(), ids=PUBLISHED
)
def test_published_counts(
    config: EncoderConfig, activation: Any, tied: int, classifier: int
) -> None:
    # Those of BERT are the counts of Hugging Face's classes.
    count = count_parameters(config, ClassifierConfig(labels=("no", "yes"), activation=activation))
    assert (count.tied, count.classifier) == (tied, classifier)

"""Parameter counts, compared with real modules and published numbers."""

from __future__ import annotations

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.counting import count_parameters
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


def test_parts_of_every_kind_add_up() -> None:
    config = small_config(
        embedding_size=8, query_key_norm=True, relative_buckets=4, tied=False, final_norm=True
    )
    classifier = ClassifierConfig(labels=("a", "b"), norm=True)
    model, count = TiedEncoder(config, classifier), count_parameters(config, classifier)
    table = model.embeddings.word.weight.numel()
    assert sum(count.parts.values()) == sum(p.numel() for p in model.parameters()) - table
    assert count.untied == count.tied + table
    D, H = config.d_model, config.num_heads
    assert count.parts["attention"] == 2 * 4 * (D * D + D) + 4 * H
    assert count.parts["feed-forward"] == 2 * (2 * D * config.d_ff + config.d_ff + D)
    assert count.parts["norms"] == 2 * (2 * 2 * D + 2 * D) + 2 * D


def test_published_count_of_a_50001_token_encoder() -> None:
    # The counts are 20,964,400 untied parameters, and 10,964,602 with a head of two classes.
    linear = ClassifierConfig(labels=("no", "yes"), activation=None)
    count = count_parameters(FIFTY_THOUSAND_WORDS, linear)
    assert (count.untied, count.classifier) == (20_964_400, 10_964_602)
    assert count.untied - count.tied == 10_000_200


def test_published_count_of_gpt_2() -> None:
    # Tying its 50,257 x 768 table saves 38,597,376 parameters.
    table = count_parameters(GPT_2).table()
    assert "124,439,808" in table
    assert "163,037,184" in table
    assert "tying saves 38,597,376 parameters, 31.0 % of the tied model" in table


def test_published_counts_of_bert_base() -> None:
    # The counts are those of Hugging Face's classes, with two labels.
    count = count_parameters(BERT_BASE, ClassifierConfig(labels=("negative", "positive")))
    assert (count.tied, count.classifier) == (109_514_298, 109_483_778)
    assert "classification head       592,130" in count.table()

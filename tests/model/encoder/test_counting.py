"""Parameter counts, compared with real modules and published numbers."""

from __future__ import annotations

import itertools

import pytest

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.counting import count_parameters
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.samples import small_config

CHOICES = [
    small_config(
        norm_placement=placement,
        positions=positions,
        ffn_bias=ffn_bias,
        norm_affine=affine,
        attention_bias=not affine,
        embedding_norm=affine,
        final_norm=placement == "pre",
        head_transform=ffn_bias != "none",
        head_bias=positions == "learned",
        type_vocab_size=types,
    )
    for placement, positions, ffn_bias, affine, types in itertools.product(
        ("pre", "post"), ("learned", "fixed"), ("none", "input", "both"), (True, False), (0, 3)
    )
]

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


def counted(model: TiedEncoder, *prefixes: str) -> int:
    """Return the number of parameters whose names begin with one of the prefixes."""
    return sum(p.numel() for name, p in model.named_parameters() if name.startswith(prefixes))


@pytest.mark.parametrize("config", CHOICES)
def test_the_count_is_that_of_the_module(config: EncoderConfig) -> None:
    model, count = TiedEncoder(config), count_parameters(config)
    assert count.tied == sum(p.numel() for p in model.parameters())
    assert count.untied == count.tied + model.embeddings.word.weight.numel()
    assert count.word_embeddings == counted(model, "embeddings.word.")
    assert count.other_embeddings == counted(model, "embeddings.") - count.word_embeddings
    assert count.head_transform == counted(model, "head.")
    assert count.head_bias == counted(model, "head_bias")
    blocks = count.attention + count.feed_forward + count.norms
    assert blocks == counted(model, "blocks.", "final_norm.")
    per_block = [f"blocks.{i}.ffn_{side}." for i in range(2) for side in ("in", "out")]
    assert count.feed_forward == counted(model, *per_block)


def test_published_count_of_a_50001_token_encoder() -> None:
    # The counts are 20,964,400 untied parameters, and 10,964,602 with a head of two classes.
    count = count_parameters(FIFTY_THOUSAND_WORDS)
    assert count.untied == 20_964_400
    linear = ClassifierConfig(labels=("no", "yes"), activation=None)
    assert count_parameters(FIFTY_THOUSAND_WORDS, linear).classifier == 10_964_602
    assert count.untied - count.tied == 10_000_200


@pytest.mark.parametrize(
    "classifier",
    [
        ClassifierConfig(labels=("a", "b", "c")),
        ClassifierConfig(labels=("a",), activation=None),
        ClassifierConfig(labels=("a", "b"), dense_bias=False, norm=True),
    ],
)
@pytest.mark.parametrize("config", [small_config(), small_config(norm_bias=False)])
def test_the_count_of_a_classification_head_is_that_of_the_module(
    classifier: ClassifierConfig, config: EncoderConfig
) -> None:
    model, count = TiedEncoder(config, classifier), count_parameters(config, classifier)
    everything = sum(p.numel() for p in model.parameters())
    assert count.classification_head == counted(model, "classifier.")
    assert count.tied == everything - count.classification_head
    assert count.classifier == everything - counted(model, "head.", "head_bias")


def test_published_count_of_gpt_2() -> None:
    # The model has 124,439,808 parameters.
    # Tying its 50,257 x 768 table saves 38,597,376 parameters, about 31 % of the tied model.
    count = count_parameters(GPT_2)
    assert count.tied == 124_439_808
    assert count.untied - count.tied == 38_597_376
    assert count.saved_share == pytest.approx(0.31, abs=0.005)


def test_published_count_of_bert_base() -> None:
    # The count is that of Hugging Face's BertForMaskedLM.
    assert count_parameters(BERT_BASE).tied == 109_514_298


def test_published_count_of_a_bert_classifier() -> None:
    # The count is that of Hugging Face's BertForSequenceClassification with two labels.
    two = ClassifierConfig(labels=("negative", "positive"))
    count = count_parameters(BERT_BASE, two)
    assert count.classifier == 109_483_778
    assert "classification head       592,130" in count.table()


def test_the_table_for_people_says_what_tying_saves() -> None:
    table = count_parameters(GPT_2).table()
    assert "124,439,808" in table
    assert "163,037,184" in table
    assert "tying saves 38,597,376 parameters, 31.0 % of the tied model" in table

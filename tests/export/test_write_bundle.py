"""Export and verification of bundles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer as TokenizerFile
from tokenizers import processors

from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.runtime import Runtime
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.bundle.reading import pair_fields
from fillmask_export.bundle.write_bundle import write_bundle
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.heads import agreement, classify
from fillmask_export.heads.classify import ExpectedLabels
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.samples import Samples
from fillmask_export.sample_texts import SampleTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.tokenizers.special_tokens import read_tokenizer
from tests.export.label_bundles import (
    HEAD,
    MEAN_HEAD,
    TASKS,
    TEXTS,
    Kind,
    label_checkpoint,
    metadata,
    write_label_bundle,
)
from tests.model.samples import random_encoder, small_config

OF_TASK = {
    "fills": ("embeddings.", "blocks.", "head.", "head_bias"),
    "labels": ("embeddings.", "blocks.", "classifier."),
    "both": ("embeddings.", "blocks.", "head.", "head_bias", "classifier."),
}


@torch.inference_mode()
def logits_of(checkpoint: Checkpoint, bundle: Bundle, text: InputText) -> NDArray[np.float32]:
    encoded = Tokenizer.from_bundle(bundle).encode(text)
    types = None if encoded.token_types is None else torch.from_numpy(encoded.token_types)[None]
    ids = torch.from_numpy(encoded.input_ids)[None]
    logits: NDArray[np.float32] = checkpoint.model.classify(ids, None, types)[0].numpy()
    return logits


@pytest.mark.parametrize(
    ("kind", "head"),
    [("fills", HEAD), ("labels", MEAN_HEAD), ("both", HEAD)],
    ids=["fills", "labels, mean", "both, first"],
)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_writes_a_bundle_the_service_reads(
    kind: Kind, head: ClassifierConfig, precision: str, tmp_path: Path
) -> None:
    # The description, the graph and the golden results of a bundle have the same tasks.
    checkpoint = label_checkpoint(kind, head)
    figures = write_label_bundle(tmp_path / "bundle", checkpoint, precision)
    fills, in_int8 = kind != "labels", precision == "int8"
    reason = "fillmask-native is not installed" if in_int8 else None
    assert figures.pop("not_fused", None) == reason
    bundle = read_bundle(tmp_path / "bundle")
    assert (bundle.name, bundle.license, bundle.precision) == ("tiny", "CC0-1.0", precision)
    assert list(bundle.tasks) == list(Runtime(bundle.model_path).tasks) == TASKS[kind]
    assert (bundle.pairs, bundle.token_types) == (True, 2)
    assert bundle.max_tokens == checkpoint.model.config.max_positions
    named = checkpoint.model.named_parameters()
    assert bundle.architecture.num_layers == 3
    assert bundle.architecture.parameters == sum(
        parameter.numel() for name, parameter in named if name.startswith(OF_TASK[kind])
    )
    assert bundle.verification == figures
    own = ["graph", *["int8"] * in_int8]
    assert set(figures) == {"tokens", *own * fills, *["labels"] * (kind != "fills")}
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    modes = {file.stat().st_mode for file in (tmp_path / "bundle").iterdir()}
    assert len(modes) == 1  # all files have the same permissions
    golden = bundle.golden
    if fills:
        assert figures["graph"]["max_log_prob_difference"] <= 1e-3
        assert figures["graph"]["same_top_5"] is True
        assert figures["graph"]["masks"] > figures["graph"]["texts"] > len(TEXTS)
        p99 = figures["int8"]["p99_log_prob_difference"] if in_int8 else 2e-3 / 4
        assert golden.log_prob_tolerance == 4 * p99
    if kind == "fills":
        assert (golden.labels, bundle.classification) == ((), None)
        return
    assert set(figures["labels"]) == set(own)
    assert bundle.classification is not None
    found = bundle.classification
    assert (found.labels, found.problem_type, found.pooling) == (
        *(head.labels, head.problem_type),
        head.pooling,
    )
    assert figures["labels"]["graph"]["texts"] > len(TEXTS)
    assert 0 < figures["labels"]["graph"]["max_logit_difference"] <= 1e-5
    largest = max(abs(logit) for one in golden.labels for logit in one.logits)
    tolerance = 2e-3 * max(1, largest)
    if in_int8:
        tolerance = 4 * figures["labels"]["int8"]["p99_logit_difference"]
    assert golden.logit_tolerance == tolerance


@pytest.mark.parametrize("head", [HEAD, MEAN_HEAD], ids=["first", "mean"])
def test_golden_results(head: ClassifierConfig, tmp_path: Path) -> None:
    # Every fourth golden text is a pair, whose results depend on its token types. A pair that is
    # too long is replaced by its first text. The logits are PyTorch's.
    checkpoint = label_checkpoint("both", head)
    write_label_bundle(tmp_path / "bundle", checkpoint)
    bundle = read_bundle(tmp_path / "bundle")
    golden = bundle.golden
    pairs = [None, TEXTS[2], None, None, None, TEXTS[6], None]
    assert [one.text for one in golden.labels] == list(TEXTS)
    assert [one.text_pair for one in golden.labels] == pairs
    assert [one.text_pair for one in golden.prompts] == pairs
    for one in golden.labels:
        text = one.text if one.text_pair is None else TextPair(one.text, one.text_pair)
        np.testing.assert_allclose(one.logits, logits_of(checkpoint, bundle, text), atol=1e-4)
    for prompt in golden.prompts:
        assert (
            prompt.text.count("[MASK]") == len(prompt.fills) == (1 if len(prompt.text) < 30 else 3)
        )
        for fills in prompt.fills:
            assert len(fills) == 5
            assert not {fill.token for fill in fills} & set(bundle.special_token_ids)
    with torch.no_grad():
        checkpoint.model.embeddings.token_type.weight[1] *= -1
    write_label_bundle(tmp_path / "other", checkpoint, max_tokens=20)
    other = read_bundle(tmp_path / "other").golden
    assert [one.text_pair for one in other.labels if one.text_pair] == [TEXTS[6]]
    for kind in ("labels", "prompts"):
        for one, changed in zip(getattr(golden, kind), getattr(other, kind), strict=True):
            assert (one == changed) is (one.text_pair is None)
    # the last text has no neighbour for a pair
    two = Samples.of_bundle(bundle, TEXTS[:2]).golden(masked=True)
    assert all(isinstance(text, str) for text, _ in two)


def test_replaces_a_bundle_and_keeps_other_files(tmp_path: Path) -> None:
    checkpoint, bundle = label_checkpoint("fills"), tmp_path / "bundle"
    texts = SampleTexts(TEXTS, TEXTS)
    write_bundle(checkpoint, bundle, metadata(), texts)
    (bundle / "MODEL_CARD.md").write_text("card")
    with pytest.raises(ValueError, match="is an existing bundle; add --overwrite"):
        write_bundle(checkpoint, bundle, metadata("int8"), texts)
    assert read_bundle(bundle).precision == "fp32"
    (bundle / "fused.onnx").write_text("graph of the old weights")
    write_bundle(checkpoint, bundle, metadata("int8"), texts, overwrite=True)
    assert read_bundle(bundle).precision == "int8"
    assert (bundle / "MODEL_CARD.md").read_text() == "card"
    assert not (bundle / "fused.onnx").exists()


Spoil = Callable[[Checkpoint, pytest.MonkeyPatch], object]


def wrong_weight(name: str) -> Spoil:
    """Return a function that gives the graph another weight than the encoder's."""

    def spoil(_: Checkpoint, patch: pytest.MonkeyPatch) -> None:
        def changed(*arguments: Any) -> dict[str, NDArray[np.float32]]:
            weights = encoder_weights(*arguments)
            return weights | {name: weights[name] * np.float32(1.5)}

        patch.setattr("fillmask_export.graph.served.encoder_weights", changed)

    return spoil


def infinite_weight(name: str) -> Spoil:
    def spoil(checkpoint: Checkpoint, _: pytest.MonkeyPatch) -> None:
        with torch.no_grad():
            checkpoint.model.get_parameter(name)[0, 0] = float("nan")

    return spoil


def limits(module: ModuleType, **values: float) -> Spoil:
    """Return a function that sets limits of the differences between int8 and fp32."""
    return lambda _, patch: [patch.setattr(module, name, one) for name, one in values.items()]


@pytest.mark.parametrize(
    ("kind", "precision", "spoil", "message"),
    [
        ("fills", "fp32", wrong_weight("blocks.1.ffn_in.bias"), "PyTorch encoder's top 5 tokens"),
        (
            *("labels", "fp32", wrong_weight("classifier.output.bias")),
            "labels' logits of the graph must differ from the PyTorch encoder's by at most",
        ),
        (
            *("labels", "fp32", wrong_weight("embeddings.position_by_type")),
            "labels' logits of the graph must differ from the PyTorch encoder's by at most",
        ),
        ("fills", "fp32", infinite_weight("blocks.0.query.weight"), "a difference of nan"),
        (
            *("labels", "fp32", infinite_weight("classifier.output.weight")),
            r"from the PyTorch encoder's .*got nan",
        ),
        (
            *("fills", "int8", limits(agreement, MIN_AGREEMENT=1.01)),
            r"the int8 graph must have fp32's top .*--precision fp32",
        ),
        (
            *("labels", "int8", limits(classify, MIN_AGREEMENT=1.01)),
            r"the int8 graph must have fp32's best label, .*--precision fp32",
        ),
        (
            *("labels", "int8", limits(classify, MAX_P99=0.0, MAX_RELATIVE_P99=0.0)),
            r"logits of int8 must differ from fp32's by at most 0 at .*--precision fp32",
        ),
    ],
)
def test_a_wrong_graph_is_not_written(
    kind: Kind,
    precision: str,
    spoil: Spoil,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint = label_checkpoint(kind)
    spoil(checkpoint, monkeypatch)
    with pytest.raises(VerificationError, match=message):
        write_label_bundle(tmp_path / "bundle", checkpoint, precision)
    assert list(tmp_path.iterdir()) == []


def test_int8_figures_of_labels_describe_the_differences(tmp_path: Path) -> None:
    # Expected logits of other weights simulate a large rounding error.
    checkpoint = label_checkpoint("labels")
    figures = write_label_bundle(tmp_path / "bundle", checkpoint, "int8")["labels"]["int8"]
    bundle = read_bundle(tmp_path / "bundle")
    inputs: list[InputText] = [*TEXTS, *map(TextPair, TEXTS[::2], TEXTS[1::2])]
    expected = np.stack([logits_of(checkpoint, bundle, text) for text in inputs])
    runtime = Runtime(bundle.model_path)
    samples = Samples.of_bundle(bundle, TEXTS)
    found = ExpectedLabels.from_samples(checkpoint.model, samples)
    assert found.real == figures["texts"] == len(inputs)
    np.testing.assert_allclose(found.exact[: found.real], expected, atol=1e-5)
    logits = [
        runtime.run(Batch.pack([request])).pooled[0] for request in found.requests[: found.real]
    ]
    difference = np.abs(np.stack(logits) - expected)
    assert figures["mean_logit_difference"] == pytest.approx(difference.mean(), abs=1e-6)
    p99 = np.quantile(difference, 0.99)
    assert figures["p99_logit_difference"] == pytest.approx(p99, abs=1e-6)
    same = np.argmax(logits, 1) == expected.argmax(1)
    assert figures["best_label_agreement"] == pytest.approx(same.mean())
    other = ExpectedLabels.from_samples(label_checkpoint("labels", seed=2).model, samples)
    with pytest.raises(VerificationError, match=r"int8 (graph )?must"):
        other.measure(runtime)


def test_the_mask_and_the_special_tokens_are_the_checkpoints(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    # Special tokens may have any name. They and table rows without a token never appear in fills,
    # even if they are the best.
    assert checkpoint.tokenizer_json is not None
    renamed = checkpoint.tokenizer_json.replace(b"[MASK]", b"<mask>").replace(b"[CLS]", b"<s>")
    tokens = read_tokenizer(renamed)
    size = tokens.get_vocab_size()
    model = random_encoder(replace(checkpoint.model.config, vocab_size=size + 3))
    special = {tokens.token_to_id(t) for t in ("[PAD]", "[UNK]", "<s>", "[SEP]", "<mask>")}
    special |= {size, size + 1, size + 2}
    with torch.no_grad():
        model.get_parameter("head_bias")[list(special)] += 8
    padded = Checkpoint(model, renamed, head_is_new=False, mask_token="<mask>")  # noqa: S106 - a token of another kind
    write_bundle(padded, tmp_path / "bundle", metadata(), texts)
    bundle = read_bundle(tmp_path / "bundle")
    assert bundle.mask_token == "<mask>"  # noqa: S105 - a token of another kind
    assert set(bundle.special_token_ids) == special
    for prompt in bundle.golden.prompts:
        assert "<mask>" in prompt.text
        for fills in prompt.fills:
            assert len(fills) == 5
            assert not {fill.token for fill in fills} & special


def without_tokenizer(checkpoint: Checkpoint) -> Checkpoint:
    return replace(checkpoint, tokenizer_json=None)


def with_rows(more: int) -> Callable[[Checkpoint], Checkpoint]:
    """Return a function that replaces the encoder by one with another table."""

    def change(checkpoint: Checkpoint) -> Checkpoint:
        config = checkpoint.model.config
        model = random_encoder(replace(config, vocab_size=config.vocab_size + more))
        return replace(checkpoint, model=model)

    return change


@pytest.mark.parametrize(
    ("change", "fields", "message"),
    [
        (
            lambda one: replace(one, head_is_new=True),
            {},
            "no masked-language-model head",
        ),
        (without_tokenizer, {}, r"has no tokenizer; add tokenizer.json"),
        # a vocabulary that is much smaller than the table belongs to another checkpoint
        (with_rows(-1), {}, r"tokenizer\.json must have ids below (\d+), the number of rows of"),
        (with_rows(2000), {}, r"must have at least \d+ tokens for (\d+) rows of"),
        *(
            (None, {"max_tokens": number}, rf"max_tokens must be from 3 to 40 \(got {number}\)")
            for number in (0, 2, 41)
        ),
        (None, {"max_tokens": 3}, "all verification texts have more than 3 tokens"),
        *(
            (None, {"name": name}, "name must have 1 to 200 printable characters")
            for name in ("a\nb", " a", "a" * 201)
        ),
    ],
)
def test_refusals(
    change: Callable[[Checkpoint], Checkpoint] | None,
    fields: dict[str, Any],
    message: str,
    tmp_path: Path,
) -> None:
    checkpoint = label_checkpoint("fills" if change else "both")
    label = replace(metadata(), **fields)
    error = CheckpointError if change else ValueError
    with pytest.raises(error, match=message):
        write_bundle(
            change(checkpoint) if change else checkpoint,
            tmp_path / "bundle",
            label,
            SampleTexts(TEXTS, TEXTS),
        )
    assert list(tmp_path.iterdir()) == []


SPECIAL = [("[CLS]", 2), ("[SEP]", 3)]
BERT = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))


@pytest.mark.parametrize(
    ("template", "types", "pairs", "token_types"),
    [
        (BERT, 2, True, 2),
        (BERT, 3, True, 3),
        # models without embeddings for type 1, such as DistilBERT and RoBERTa
        (BERT, 1, True, 1),
        (BERT, 0, True, 1),
        # RoBERTa's template has type 0 only
        (processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)), 2, True, 1),
        (
            processors.TemplateProcessing("[CLS] $A [SEP]", "$A $B [SEP]", SPECIAL),
            *(2, False, 1),
        ),
        (
            processors.TemplateProcessing("[CLS] $A [SEP]", "$A [SEP] $B:1", SPECIAL),
            *(2, True, 2),
        ),
        (None, 2, False, 1),
    ],
)
def test_pairs_and_types_come_from_the_tokenizer(
    template: processors.PostProcessor | None, types: int, token_types: int, *, pairs: bool
) -> None:
    content = label_checkpoint("fills").tokenizer_json
    assert content is not None
    tokenizer = TokenizerFile.from_str(content.decode())
    tokenizer.post_processor = template or processors.Sequence([])
    config = small_config(type_vocab_size=types)
    found = pair_fields(tokenizer.to_str().encode(), "[MASK]", config)
    assert found == {"pairs": pairs, "token_types": token_types}

"""Export and verification of bundles with labels and pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer as TokenizerFile
from tokenizers import processors

from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.bundles.golden import GoldenLabels, GoldenPrompt
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.runtime import Runtime
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.commands import main
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.text_format import TextFormat
from fillmask_export.verification.comparison import VerificationError
from fillmask_export.verification.golden import renew_golden_results
from fillmask_export.verification.labels import ExpectedLabels
from fillmask_model.checkpoints.checkpoint import Checkpoint, save_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.export.label_bundles import (
    HEAD,
    MEAN_HEAD,
    TASKS,
    TEXTS,
    Kind,
    label_checkpoint,
    write_label_bundle,
)
from tests.model.samples import small_config

KINDS = pytest.mark.parametrize("kind", list(TASKS))
PRECISIONS = pytest.mark.parametrize("precision", ["fp32", "int8"])
HEADS = pytest.mark.parametrize("head", [HEAD, MEAN_HEAD], ids=["first", "mean"])


def _golden_input(golden: GoldenPrompt | GoldenLabels) -> InputText:
    return golden.text if golden.text_pair is None else TextPair(golden.text, golden.text_pair)


@torch.inference_mode()
def _logits(checkpoint: Checkpoint, bundle: Bundle, text: InputText) -> NDArray[np.float32]:
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
@PRECISIONS
def test_writes_a_bundle_the_service_reads(
    kind: Kind, head: ClassifierConfig, precision: str, tmp_path: Path
) -> None:
    # The description, the graph and the golden results of a bundle have the same tasks.
    checkpoint = label_checkpoint(kind, head)
    figures = write_label_bundle(tmp_path / "bundle", checkpoint, precision)
    reason = "fillmask-native is not installed" if precision == "int8" else None
    assert figures.pop("not_fused", None) == reason
    bundle = read_bundle(tmp_path / "bundle")
    assert list(bundle.tasks) == TASKS[kind]
    assert list(Runtime(bundle.model_path).tasks) == TASKS[kind]
    assert (bundle.pairs, bundle.token_types) == (True, 2)
    assert bundle.verification == figures
    fills, labels = kind != "labels", kind != "fills"
    in_int8 = precision == "int8"
    assert set(figures) == {
        "tokens",
        *(["graph"] if fills else []),
        *(["int8"] if fills and in_int8 else []),
        *(["labels"] if labels else []),
    }
    assert bool(bundle.golden.prompts) is fills
    assert bool(bundle.golden.labels) is labels
    assert (bundle.classification is not None) is labels
    if bundle.classification is None:
        return
    assert bundle.classification.labels == head.labels
    assert bundle.classification.problem_type == head.problem_type
    assert bundle.classification.pooling == head.pooling
    assert figures["labels"]["graph"]["texts"] > len(TEXTS)
    assert 0 < figures["labels"]["graph"]["max_logit_difference"] <= 1e-5
    assert ("int8" in figures["labels"]) is in_int8
    if in_int8:
        expected = 4 * figures["labels"]["int8"]["p99_logit_difference"]
        assert bundle.golden.logit_tolerance == expected


@HEADS
def test_golden_labels_are_those_of_pytorch(head: ClassifierConfig, tmp_path: Path) -> None:
    # Every fourth golden text is a pair.
    checkpoint = label_checkpoint("labels", head)
    write_label_bundle(tmp_path / "bundle", checkpoint)
    bundle = read_bundle(tmp_path / "bundle")
    golden = bundle.golden.labels
    assert [one.text for one in golden] == list(TEXTS)
    pairs = [one.text_pair for one in golden]
    assert pairs == [None, TEXTS[2], None, None, None, TEXTS[6], None]
    for one in golden:
        expected = _logits(checkpoint, bundle, _golden_input(one))
        np.testing.assert_allclose(one.logits, expected, atol=1e-4)
    largest = max(abs(logit) for one in golden for logit in one.logits)
    assert bundle.golden.logit_tolerance == 2e-3 * max(1, largest)


def test_token_types_change_the_golden_results(tmp_path: Path) -> None:
    # The golden results of a pair depend on its token types.
    checkpoint = label_checkpoint("both")
    write_label_bundle(tmp_path / "bundle", checkpoint)
    with torch.no_grad():
        checkpoint.model.embeddings.token_type.weight[1] *= -1
    write_label_bundle(tmp_path / "other", checkpoint)
    first, second = (read_bundle(tmp_path / name).golden for name in ("bundle", "other"))
    for kind in ("labels", "prompts"):
        for one, other in zip(getattr(first, kind), getattr(second, kind), strict=True):
            assert (one == other) is (one.text_pair is None)


def test_golden_prompts_have_pairs(tmp_path: Path) -> None:
    write_label_bundle(tmp_path / "bundle", label_checkpoint("fills"))
    prompts = read_bundle(tmp_path / "bundle").golden.prompts
    assert [one.text_pair for one in prompts if one.text_pair] == [TEXTS[2], TEXTS[6]]
    for prompt in prompts:
        assert prompt.text.count("[MASK]") == len(prompt.fills)
    # the last text has no neighbour for a pair
    assert renew_golden_results(tmp_path / "bundle", TEXTS[:2]) == 2
    prompts = read_bundle(tmp_path / "bundle").golden.prompts
    assert [one.text_pair for one in prompts] == [None, None]


def test_a_pair_that_is_too_long_is_replaced_by_its_first_text(tmp_path: Path) -> None:
    write_label_bundle(tmp_path / "bundle", label_checkpoint("both"), max_tokens=20)
    golden = read_bundle(tmp_path / "bundle").golden
    assert [one.text for one in golden.labels] == list(TEXTS)
    assert [one.text_pair for one in golden.labels if one.text_pair] == [TEXTS[6]]


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("fills", ("embeddings.", "blocks.", "head.", "head_bias")),
        ("labels", ("embeddings.", "blocks.", "classifier.")),
        ("both", ("embeddings.", "blocks.", "head.", "head_bias", "classifier.")),
    ],
)
def test_counts_the_parameters_of_the_tasks(
    kind: Kind, parts: tuple[str, ...], tmp_path: Path
) -> None:
    checkpoint = label_checkpoint(kind)
    write_label_bundle(tmp_path / "bundle", checkpoint)
    named = checkpoint.model.named_parameters()
    expected = sum(parameter.numel() for name, parameter in named if name.startswith(parts))
    assert read_bundle(tmp_path / "bundle").architecture.parameters == expected


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("classifier.output.bias", "must differ from the PyTorch encoder's by at most"),
        ("embeddings.position_by_type", "must differ from the PyTorch encoder's by at most"),
    ],
)
def test_a_wrong_graph_is_not_written(
    weight: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(
        model: TiedEncoder, max_tokens: int, token_types: int
    ) -> dict[str, NDArray[np.float32]]:
        weights = encoder_weights(model, max_tokens, token_types)
        return weights | {weight: weights[weight] * np.float32(1.5)}

    monkeypatch.setattr("fillmask_export.graph.files.encoder_weights", changed)
    with pytest.raises(VerificationError, match=message):
        write_label_bundle(tmp_path / "bundle", label_checkpoint("labels"))
    assert list(tmp_path.iterdir()) == []


def test_a_head_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    checkpoint = label_checkpoint("labels")
    with torch.no_grad():
        checkpoint.model.get_parameter("classifier.output.weight")[0, 0] = float("nan")
    with pytest.raises(VerificationError, match=r"from the PyTorch encoder's .*got nan"):
        write_label_bundle(tmp_path / "bundle", checkpoint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("MIN_AGREEMENT", 1.01, r"the int8 graph must have fp32's best label, .*--precision fp32"),
        (
            "MAX_P99",
            0.0,
            r"logits of int8 must differ from fp32's by at most 0 at .*--precision fp32",
        ),
    ],
)
def test_int8_that_loses_too_much_is_not_written(
    limit: str, value: float, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"fillmask_export.verification.labels.{limit}", value)
    monkeypatch.setattr("fillmask_export.verification.labels.MAX_RELATIVE_P99", 0.0)
    with pytest.raises(VerificationError, match=message):
        write_label_bundle(tmp_path / "bundle", label_checkpoint("labels"), "int8")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_rounding_is_rejected(tmp_path: Path) -> None:
    # The expected logits of other weights simulate a large rounding error.
    write_label_bundle(tmp_path / "bundle", label_checkpoint("labels", seed=1), "int8")
    bundle = read_bundle(tmp_path / "bundle")
    other = label_checkpoint("labels", seed=2)
    tokenizer = Tokenizer.from_bundle(bundle)
    expected = ExpectedLabels.from_texts(other.model, TEXTS, tokenizer, bundle.max_tokens, 2)
    with pytest.raises(VerificationError, match=r"int8 (graph )?must"):
        expected.measure(Runtime(bundle.model_path))


def test_int8_figures_describe_the_differences(tmp_path: Path) -> None:
    checkpoint = label_checkpoint("labels")
    figures = write_label_bundle(tmp_path / "bundle", checkpoint, "int8")["labels"]["int8"]
    bundle = read_bundle(tmp_path / "bundle")
    inputs: list[InputText] = [*TEXTS, *map(TextPair, TEXTS[::2], TEXTS[1::2])]
    expected = np.stack([_logits(checkpoint, bundle, text) for text in inputs])
    tokenizer, runtime = Tokenizer.from_bundle(bundle), Runtime(bundle.model_path)
    labels = ExpectedLabels.from_texts(checkpoint.model, TEXTS, tokenizer, bundle.max_tokens, 2)
    assert labels.real == figures["texts"] == len(inputs)
    np.testing.assert_allclose(labels.logits[: labels.real], expected, atol=1e-5)
    assert 0 < figures["mean_logit_difference"] < figures["p99_logit_difference"] < 0.1
    again = labels.measure(runtime)
    assert again["mean_logit_difference"] == pytest.approx(figures["mean_logit_difference"])
    best = [np.argmax(row) for row in expected]
    found = [
        runtime.run(Batch.pack([request])).label_logits.argmax()
        for request in labels.requests[: labels.real]
    ]
    assert figures["best_label_agreement"] == pytest.approx(np.equal(best, found).mean())


@KINDS
def test_renews_golden_results(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle"
    write_label_bundle(path, label_checkpoint(kind))
    made = json.loads((path / "bundle.json").read_text())
    changed = json.loads((path / "bundle.json").read_text())
    changed["golden"]["prompts"] = changed["golden"]["prompts"][:1]
    if kind != "fills":
        changed["golden"]["labels"] = [{"text": "cat", "logits": [0.0, 0.0, 0.0]}]
    (path / "bundle.json").write_text(json.dumps(changed))
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(TEXTS))
    assert main([str(path), "--renew-golden", "--texts", str(sentences)]) == 0
    count = len(TEXTS) * len(TASKS[kind])
    assert f"written: {count} golden results" in capsys.readouterr().out
    assert json.loads((path / "bundle.json").read_text()) == made


def test_texts_that_are_all_too_long(tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="all verification texts have more than 3 tokens"):
        write_label_bundle(tmp_path / "bundle", label_checkpoint("labels"), max_tokens=3)


def test_a_checkpoint_without_a_trained_head_is_rejected(tmp_path: Path) -> None:
    headless = replace(label_checkpoint("fills"), head_is_new=True)
    with pytest.raises(CheckpointError, match="no masked-language-model head"):
        write_label_bundle(tmp_path / "bundle", headless)


def test_command_line_writes_labels(tmp_path: Path) -> None:
    checkpoint = label_checkpoint("both")
    assert checkpoint.tokenizer_json is not None
    save_checkpoint(tmp_path / "checkpoint", checkpoint.model, checkpoint.tokenizer_json)
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(TEXTS))
    bundle = tmp_path / "bundle"
    arguments = ["--output", str(bundle), "--texts", str(sentences)]
    assert main([str(tmp_path / "checkpoint"), *arguments]) == 0
    assert read_bundle(bundle).tasks == ("fill-mask", "text-classification")


def test_a_checkpoint_without_fills_has_no_reference_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The reference graph only fills masks. The same checkpoint gives a bundle with labels.
    checkpoint = label_checkpoint("labels")
    assert checkpoint.tokenizer_json is not None
    directory = tmp_path / "checkpoint"
    save_checkpoint(directory, checkpoint.model, checkpoint.tokenizer_json, fills=False)
    reference, bundle = tmp_path / "reference.onnx", tmp_path / "bundle"
    assert main([str(directory), "--reference", str(reference)]) == 2
    assert "the checkpoint has no masked-language-model head" in capsys.readouterr().err
    assert not reference.exists()
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(TEXTS))
    assert main([str(directory), "--output", str(bundle), "--texts", str(sentences)]) == 0
    assert read_bundle(bundle).tasks == ("text-classification",)


def _post_processed(template: processors.PostProcessor | None) -> bytes:
    content = label_checkpoint("fills").tokenizer_json
    assert content is not None
    tokenizer = TokenizerFile.from_str(content.decode())
    if template is None:
        without = json.loads(tokenizer.to_str()) | {"post_processor": None}
        return json.dumps(without).encode()
    tokenizer.post_processor = template
    return tokenizer.to_str().encode()


SPECIAL = [("[CLS]", 2), ("[SEP]", 3)]


@pytest.mark.parametrize(
    ("template", "types", "expected"),
    [
        (processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), 2, TextFormat(True, 2)),  # noqa: FBT003 - the tested value
        (processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), 3, TextFormat(True, 3)),  # noqa: FBT003 - the tested value
        # models without embeddings for type 1, such as DistilBERT and RoBERTa
        (processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), 1, TextFormat(True, 1)),  # noqa: FBT003 - the tested value
        (processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), 0, TextFormat(True, 1)),  # noqa: FBT003 - the tested value
        # RoBERTa's template has type 0 only
        (processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)), 2, TextFormat(True, 1)),  # noqa: FBT003 - the tested value
        (
            processors.TemplateProcessing("[CLS] $A [SEP]", "$A $B [SEP]", SPECIAL),
            2,
            TextFormat(False, 1),  # noqa: FBT003 - the tested value
        ),
        (
            processors.TemplateProcessing("[CLS] $A [SEP]", "$A [SEP] $B:1", SPECIAL),
            2,
            TextFormat(True, 2),  # noqa: FBT003 - the tested value
        ),
        (None, 2, TextFormat(False, 1)),  # noqa: FBT003 - the tested value
    ],
)
def test_pairs_and_types_come_from_the_tokenizer(
    template: processors.PostProcessor | None, types: int, expected: TextFormat
) -> None:
    config = small_config(type_vocab_size=types)
    content = _post_processed(template)
    assert TextFormat.from_tokenizer(content, "[MASK]", config) == expected

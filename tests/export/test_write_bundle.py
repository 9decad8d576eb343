"""Export and verification of bundles."""

from __future__ import annotations

import json
import shutil
import sys
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray

from fillmask.bundles.bundle import read_bundle
from fillmask.engine.runtime import Runtime
from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.commands import main
from fillmask_export.graph.files import save_graph
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.sample_texts import SampleTexts
from fillmask_export.source import load_source
from fillmask_export.verification.comparison import VerificationError
from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.rounding import RoundedEncoder
from fillmask_model.tokenizers.special_tokens import read_tokenizer
from tests.model.samples import VERSES, plan_of, random_encoder


def _label(precision: str = "fp32", max_tokens: int | None = None) -> BundleMetadata:
    return BundleMetadata(
        name="tiny",
        license="CC0-1.0",
        description="A test.",
        max_tokens=max_tokens,
        precision=precision,
    )


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_writes_a_bundle_the_service_reads(
    precision: str, checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    # The service reads label, sizes, figures and golden prompts.
    figures = write_bundle(checkpoint, tmp_path / "bundle", _label(precision), texts)
    reason = "fillmask-native is not installed" if precision == "int8" else None
    assert figures.pop("not_fused", None) == reason
    bundle = read_bundle(tmp_path / "bundle")
    assert (bundle.name, bundle.license, bundle.precision) == ("tiny", "CC0-1.0", precision)
    assert bundle.architecture.num_layers == 3
    assert bundle.max_tokens == checkpoint.model.config.max_positions
    parameters = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    assert bundle.architecture.parameters == parameters
    assert bundle.verification == figures
    assert figures["graph"]["max_log_prob_difference"] <= 1e-3
    assert figures["graph"]["same_top_5"] is True
    assert figures["graph"]["masks"] > figures["graph"]["texts"] > len(VERSES)
    assert ("int8" in figures) is (precision == "int8")
    assert bundle.golden.prompts
    for prompt in bundle.golden.prompts:
        assert prompt.text.count("[MASK]") == len(prompt.fills) == 3
        for fills in prompt.fills:
            assert len(fills) == 5
            assert not {fill.token for fill in fills} & set(bundle.special_token_ids)
    int8_tolerance = 4 * figures["int8"]["p99_log_prob_difference"] if "int8" in figures else None
    assert bundle.golden.log_prob_tolerance == (int8_tolerance or 2e-3)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    modes = {file.stat().st_mode for file in (tmp_path / "bundle").iterdir()}
    assert len(modes) == 1  # all files have the same permissions


def test_weights_that_training_has_rounded_are_served_as_they_are(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    # The int8 weights equal the checkpoint's weights. Calibration does not run.
    trained = RoundedEncoder(checkpoint.model, plan_of(checkpoint.model))
    assert checkpoint.tokenizer_json is not None
    tokenizer_json = checkpoint.tokenizer_json
    save_checkpoint(tmp_path / "rounded_copy", trained.rounded_copy(), tokenizer_json, trained.plan)
    rounded_copy = load_checkpoint(tmp_path / "rounded_copy")
    no_calibration = SampleTexts(texts.verification, calibration=[])
    write_bundle(rounded_copy, tmp_path / "bundle", _label("int8"), no_calibration)
    stored = onnx.load(tmp_path / "bundle" / "model.onnx").graph.initializer
    arrays = {t.name: onnx.numpy_helper.to_array(t, str(tmp_path / "bundle")) for t in stored}

    def in_file(name: str) -> NDArray[np.float32]:
        values, scales = arrays[f"{name}.weight"], arrays[f"{name}.scales"]
        found: NDArray[np.float32] = values.astype(np.float32).T * scales[:, None]
        return found

    weights = encoder_weights(rounded_copy.model)
    table = arrays["embeddings.word.weight"] * arrays["embeddings.word.weight.scales"][:, None]
    table = table * arrays["embeddings.word.weight.factors"]
    np.testing.assert_allclose(table, weights["embeddings.word.weight"], rtol=1e-5, atol=1e-7)
    plan = {name: factors.numpy() for name, factors in trained.plan.factors.items()}
    output, value = "blocks.1.output", "blocks.1.value"
    np.testing.assert_allclose(
        in_file(output) * plan[output], weights[f"{output}.weight"], rtol=1e-5, atol=1e-7
    )
    # the output's weights are divided by these factors, the values' weights multiplied
    expected = weights[f"{value}.weight"] * plan[output][:, None]
    in_int8 = plan[value] > 0
    np.testing.assert_allclose(
        (in_file(value) * plan[value])[:, in_int8], expected[:, in_int8], rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(arrays[f"{value}.float32_weight"], expected[:, ~in_int8], rtol=1e-6)


def test_rounding_to_the_nearest_value(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    # Without compensation, each weight divided by its factors is at most half a step from int8.
    write_bundle(checkpoint, tmp_path / "bundle", _label("int8"), texts, compensate=False)
    write_bundle(checkpoint, tmp_path / "gptq", _label("int8"), texts)
    errors = {}
    for name in ("bundle", "gptq"):
        graph = onnx.load(tmp_path / name / "model.onnx").graph
        tensors = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        part = "blocks.0.output"
        weight = checkpoint.model.get_parameter(f"{part}.weight").detach().numpy()
        scales = tensors[f"{part}.scales"]
        steps = tensors[f"{part}.weight"].T * scales[:, None]
        factors = (steps * weight).sum(0) / (weight**2).sum(0)  # least squares
        errors[name] = np.abs(steps / factors - weight) * factors / scales[:, None]
    assert np.quantile(errors["bundle"], 0.99) < 0.6  # half a step, and errors of the factors
    assert np.quantile(errors["gptq"], 0.99) > 0.7


def test_replaces_a_bundle_and_keeps_other_files(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    write_bundle(checkpoint, tmp_path / "bundle", _label(), texts)
    (tmp_path / "bundle" / "MODEL_CARD.md").write_text("card")
    with pytest.raises(ValueError, match="is an existing bundle; add --overwrite"):
        write_bundle(checkpoint, tmp_path / "bundle", _label("int8"), texts)
    assert read_bundle(tmp_path / "bundle").precision == "fp32"
    (tmp_path / "bundle" / "fused.onnx").write_text("graph of the old weights")
    write_bundle(checkpoint, tmp_path / "bundle", _label("int8"), texts, overwrite=True)
    assert read_bundle(tmp_path / "bundle").precision == "int8"
    assert (tmp_path / "bundle" / "MODEL_CARD.md").read_text() == "card"
    assert not (tmp_path / "bundle" / "fused.onnx").exists()


def test_a_wrong_graph_is_not_written(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(
        model: TiedEncoder, max_tokens: int, token_types: int
    ) -> dict[str, NDArray[np.float32]]:
        weights = encoder_weights(model, max_tokens, token_types)
        return weights | {"blocks.1.ffn_in.bias": weights["blocks.1.ffn_in.bias"] + 0.1}

    monkeypatch.setattr("fillmask_export.graph.files.encoder_weights", changed)
    with pytest.raises(
        VerificationError, match="the graph must have the PyTorch encoder's top 5 tokens"
    ):
        write_bundle(checkpoint, tmp_path / "bundle", _label(), texts)
    assert list(tmp_path.iterdir()) == []


def test_the_encoder_is_gone_before_a_graph_is_loaded(
    checkpoint_path: Path, texts: SampleTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Memory may be too small for both a large encoder and the runtime of its graph.
    encoders: list[weakref.ref[TiedEncoder]] = []
    alive_at_load: list[bool] = []

    def save(model: TiedEncoder, *arguments: Any, **options: Any) -> None:
        encoders.append(weakref.ref(model))
        save_graph(model, *arguments, **options)

    class Watched(Runtime):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            alive_at_load.append(encoders[0]() is not None)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("fillmask_export.bundle.write_bundle.save_graph", save)
    monkeypatch.setattr("fillmask_export.bundle.write_bundle.Runtime", Watched)
    monkeypatch.setattr("fillmask_export.verification.expected_results.Runtime", Watched)
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(texts.verification))
    files = ["--texts", str(sentences), "--calibrate", str(sentences)]
    bundle = str(tmp_path / "bundle")
    assert main([str(checkpoint_path), "--output", bundle, "--precision", "int8", *files]) == 0
    assert len(encoders) == 2
    assert alive_at_load == [False] * 3


def test_an_export_says_why_it_has_no_fused_graph(
    checkpoint_path: Path,
    texts: SampleTexts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The reason is that of the service for the stock graph, here for a package of another version.
    monkeypatch.setitem(sys.modules, "fillmask_native", SimpleNamespace(OPERATORS_VERSION=0))
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(texts.verification))
    flags = ["--precision", "int8", "--rounding", "nearest", "--texts", str(sentences)]
    assert main([str(checkpoint_path), "--output", str(tmp_path / "bundle"), *flags]) == 0
    assert "without a fused graph, because fillmask-native must have version" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(("rounding", "read"), [("gptq", 9), ("nearest", 5)])
def test_rounding_to_nearest_calibrates_with_every_other_sentence(
    checkpoint_path: Path,
    texts: SampleTexts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rounding: str,
    read: int,
) -> None:
    given: list[Sequence[object]] = []

    def round_weights(
        _checkpoint: Checkpoint, calibration: Sequence[object], *_: Any, **__: Any
    ) -> None:
        given.append(calibration)
        raise ValueError("enough")

    monkeypatch.setattr("fillmask_export.bundle.write_bundle.int8_weights", round_weights)
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(f"sentence {number}" for number in range(9)))
    arguments = [
        "--output",
        str(tmp_path / "bundle"),
        "--precision",
        "int8",
        "--rounding",
        rounding,
    ]
    verses = tmp_path / "verses.txt"
    verses.write_text("\n".join(texts.verification))
    arguments += ["--texts", str(verses), "--calibrate", str(sentences)]
    assert main([str(checkpoint_path), *arguments]) == 2
    assert [len(one) for one in given] == [read]


def test_int8_that_loses_too_much_is_not_written(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The error message contains the loss of accuracy and an alternative.
    monkeypatch.setattr("fillmask_export.verification.agreement.MIN_AGREEMENT", 1.01)
    with pytest.raises(
        VerificationError, match=r"the int8 graph must have fp32's top .*--precision fp32"
    ):
        write_bundle(checkpoint, tmp_path / "bundle", _label("int8"), texts)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_not_finite_are_not_written(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    with torch.no_grad():
        checkpoint.model.blocks[0].query.weight[0, 0] = float("nan")  # type: ignore[union-attr,operator]  # nn.ModuleList is untyped
    with pytest.raises(VerificationError):
        write_bundle(checkpoint, tmp_path / "bundle", _label(), texts)
    assert list(tmp_path.iterdir()) == []


def test_refusals(checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path) -> None:
    headless = Checkpoint(checkpoint.model, checkpoint.tokenizer_json, head_is_new=True)
    with pytest.raises(CheckpointError, match="no masked-language-model head"):
        write_bundle(headless, tmp_path / "bundle", _label(), texts)
    mute = Checkpoint(checkpoint.model, None, head_is_new=False)
    with pytest.raises(CheckpointError, match=r"has no tokenizer; add tokenizer.json"):
        write_bundle(mute, tmp_path / "bundle", _label(), texts)
    (tmp_path / "photos").mkdir()
    with pytest.raises(ValueError, match="but is not a bundle"):
        write_bundle(checkpoint, tmp_path / "photos", _label(), texts)
    for number in (0, 2, 25):
        with pytest.raises(ValueError, match=rf"max_tokens must be from 3 to 24 \(got {number}\)"):
            write_bundle(checkpoint, tmp_path / "bundle", _label(max_tokens=number), texts)


def test_the_mask_and_the_special_tokens_are_the_checkpoints(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    # Special tokens may have any name. They and table rows without a token never appear in fills,
    # even if they are the best.
    assert checkpoint.tokenizer_json is not None
    renamed = checkpoint.tokenizer_json.replace(b"[MASK]", b"<mask>").replace(b"[CLS]", b"<s>")
    size = read_tokenizer(renamed).get_vocab_size()
    model = random_encoder(replace(checkpoint.model.config, vocab_size=size + 3))
    tokens = read_tokenizer(renamed)
    special = {tokens.token_to_id(t) for t in ("[PAD]", "[UNK]", "<s>", "[SEP]", "<mask>")}
    special |= {size, size + 1, size + 2}
    with torch.no_grad():
        model.get_parameter("head_bias")[list(special)] += 8
    padded = Checkpoint(model, renamed, head_is_new=False, mask_token="<mask>")  # noqa: S106 - a token of another kind
    write_bundle(padded, tmp_path / "bundle", _label(), texts)
    bundle = read_bundle(tmp_path / "bundle")
    assert bundle.mask_token == "<mask>"  # noqa: S105 - a token of another kind
    assert set(bundle.special_token_ids) == special
    for prompt in bundle.golden.prompts:
        assert "<mask>" in prompt.text
        for fills in prompt.fills:
            assert len(fills) == 5
            assert not {fill.token for fill in fills} & special


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (-1, r"tokenizer\.json must have ids below (\d+), the number of rows of"),
        (2000, r"must have at least \d+ tokens for (\d+) rows of"),
    ],
)
def test_a_vocabulary_that_does_not_fit_the_table(
    more: int, message: str, checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path
) -> None:
    # A vocabulary that is much smaller than the table belongs to another checkpoint.
    config = checkpoint.model.config
    model = random_encoder(replace(config, vocab_size=config.vocab_size + more))
    other = Checkpoint(model, checkpoint.tokenizer_json, head_is_new=False, mask_token="[MASK]")  # noqa: S106 - a token of another kind
    with pytest.raises(CheckpointError, match=message):
        write_bundle(other, tmp_path / "bundle", _label(), texts)
    assert list(tmp_path.iterdir()) == []


def test_command_line(
    checkpoint_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join(VERSES))
    bundle, reference = tmp_path / "bundle", tmp_path / "reference.onnx"
    assert main([str(checkpoint_path), "--output", str(bundle), "--texts", str(sentences)]) == 0
    assert "verified and written" in capsys.readouterr().out
    assert json.loads((bundle / "bundle.json").read_text())["name"] == "tiny"
    assert main([str(checkpoint_path), "--reference", str(reference)]) == 0
    assert reference.stat().st_size > 0


@pytest.mark.parametrize("change", ["nothing", "another option", "a file during the export"])
def test_the_cache_needs_one_export_of_the_same_files(
    change: str,
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = shutil.copytree(checkpoint_path, tmp_path / "tiny")
    texts = tmp_path / "texts"
    texts.write_text("\n".join(VERSES))
    arguments = [str(source), "--cache", "--texts", str(texts)]

    def load_and_change(*given: Any) -> Checkpoint:
        if change == "a file during the export":
            (source / "notes").mkdir()
            (source / "notes" / "one").touch()
        return load_source(*given)

    with monkeypatch.context() as patch:
        patch.setattr("fillmask_export.commands.load_source", load_and_change)
        assert main(arguments) == 0
    told = f"{source} has changed during the export; export it again"
    assert (told in capsys.readouterr().err) == (change == "a file during the export")
    if change == "another option":
        texts.write_text("\n".join(VERSES[1:]))
    for exported in (change != "nothing", False):
        assert main(arguments) == 0
        assert ("in the cache" in capsys.readouterr().out) != exported


def test_renews_golden_prompts(
    checkpoint: Checkpoint, texts: SampleTexts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle"
    write_bundle(checkpoint, path, _label("int8"), texts)
    made = {file.name: file.read_bytes() for file in path.iterdir()}
    old = json.loads(made["bundle.json"])
    old["golden"] = {
        "log_prob_tolerance": 0.02,
        "prompts": [{"text": "the [MASK]", "fills": [[{"token": 7, "log_prob": -1.0}]]}],
    }
    (path / "bundle.json").write_text(json.dumps(old))
    sentences = tmp_path / "texts.txt"
    sentences.write_text("\n".join([*VERSES, "the sun", "word " * 99]))
    assert main([str(path), "--renew-golden", "--texts", str(sentences)]) == 0
    assert "written: 4 golden results" in capsys.readouterr().out
    renewed = json.loads((path / "bundle.json").read_text())
    expected = json.loads(made["bundle.json"])
    *verses, short = renewed["golden"]["prompts"]
    assert (verses, short["text"]) == (expected["golden"]["prompts"], "the [MASK]")
    assert renewed | {"golden": None} == expected | {"golden": None}
    rest = {file.name: file.read_bytes() for file in path.iterdir()} | {"bundle.json": b""}
    assert rest == made | {"bundle.json": b""}
    sentences.write_text("word " * 99)
    assert main([str(path), "--renew-golden", "--texts", str(sentences)]) == 2
    assert "all verification texts have more than" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["--output", "--reference"])
def test_a_full_disk_leaves_nothing(
    output: str,
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fill(_: object, file: Path) -> None:
        file.write_bytes(b"half of a graph")
        raise OSError("4480 requested and 1856 written")

    monkeypatch.setattr(onnx, "save", fill)
    path = tmp_path / "new"
    assert main([str(checkpoint_path), output, str(path)]) == 2
    sentence = f"fillmask-export: {path} cannot be written, because its disk is full; free some"
    assert capsys.readouterr().err.startswith(sentence)
    assert list(tmp_path.iterdir()) == []


def test_command_line_fails_with_one_sentence(
    checkpoint_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The error is one line without a traceback. The exit status is 2.
    assert main([str(tmp_path / "absent"), "--output", str(tmp_path / "bundle")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fillmask-export: ")
    assert error.count("\n") == 1
    sentences = tmp_path / "sentences.txt"
    for content, message in ((b"\n \n", "has no text"), (b"caf\xe9\n", "is not valid UTF-8")):
        sentences.write_bytes(content)
        flags = ["--output", str(tmp_path / "bundle"), "--texts", str(sentences)]
        assert main([str(checkpoint_path), *flags]) == 2
        assert f"{sentences} {message}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "exactly one of --output" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a\nb", " a", "a" * 201])
def test_a_name_that_no_service_reads_is_rejected(
    name: str,
    checkpoint: Checkpoint,
    texts: SampleTexts,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # before any work, such as a download
    label = replace(_label(), name=name)
    with pytest.raises(ValueError, match="name must have 1 to 200 printable characters"):
        write_bundle(checkpoint, tmp_path / "bundle", label, texts)
    assert main(["org/model", "--output", str(tmp_path / "bundle"), "--name", name]) == 2
    assert "fillmask-export: name must have 1 to 200 printable" in capsys.readouterr().err

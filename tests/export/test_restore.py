"""Restoration of a checkpoint from a bundle."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.parameters.texts import TextPair
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.graph import operators
from fillmask_export.restore import main, restore
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.rounding import RoundedEncoder
from tests.export.label_bundles import label_checkpoint, write_label_bundle
from tests.model.samples import plan_of, random_ids
from tests.service import tiny

BUILT_IN = read_bundle(default_bundle_path())
# between logits of about 1 in float32, whose sums have another order after restoration
TOLERANCE = 2e-5
TOKENS = 40  # the maximum of label_checkpoint


def _logits(model: TiedEncoder, *, types: bool) -> Tensor:
    """Return the logits at every position of random rows."""
    ids_NT = random_ids((4, TOKENS), model.config.vocab_size)
    types_NT = random_ids((4, TOKENS), 2, seed=1) if types else None
    with torch.inference_mode():
        logits_MV: Tensor = model(ids_NT, torch.ones_like(ids_NT), None, types_NT)
    return logits_MV


def _without_biases(model: TiedEncoder) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") and "norm" not in name:
                parameter.zero_()


CHANGES: dict[str, dict[str, Any]] = {
    "erf": {},
    "tanh, no types, another epsilon": {
        "activation": "gelu_tanh",
        "type_vocab_size": 0,
        "norm_eps": 1e-5,
    },
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_restored_encoder_has_the_logits_of_the_exported_encoder(
    precision: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    # Training has already rounded the weights for int8, so that the export does not change them.
    checkpoint = label_checkpoint("fills", **changes)
    if precision == "int8":
        trained = RoundedEncoder(checkpoint.model, plan_of(checkpoint.model))
        checkpoint = replace(checkpoint, model=trained.rounded_copy(), rounding=trained.plan)
    write_label_bundle(tmp_path / "bundle", checkpoint, precision)
    main([str(tmp_path / "bundle"), str(tmp_path / "restored")])
    restored = load_checkpoint(tmp_path / "restored")
    assert restored.tokenizer_json == checkpoint.tokenizer_json
    assert not restored.head_is_new
    config = checkpoint.model.config
    assert restored.model.config == config
    found, expected = (
        _logits(model, types=bool(config.type_vocab_size))
        for model in (restored.model, checkpoint.model)
    )
    assert float(expected.std()) > 0.5  # precondition of the tolerance
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_biases_of_zeros_and_parts_of_the_vocabulary(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The graph omits biases of zeros. Each part of the vocabulary has its own part of the bias.
    monkeypatch.setattr(operators, "PART_ROWS", 40)
    checkpoint = label_checkpoint("fills", num_layers=1)
    head_bias = checkpoint.model.head_bias.detach().clone()
    _without_biases(checkpoint.model)
    with torch.no_grad():
        checkpoint.model.head_bias.copy_(head_bias)
    write_label_bundle(tmp_path / "bundle", checkpoint, precision)
    restored = restore(read_bundle(tmp_path / "bundle"))
    assert torch.equal(restored.head_bias, head_bias)
    for name, parameter in restored.named_parameters():
        if name.endswith("bias") and "norm" not in name and name != "head_bias":
            assert not parameter.any(), name


def test_restored_built_in_encoder_gives_the_golden_fills(tmp_path: Path) -> None:
    # The log-probabilities differ by at most 0.2 nats, the error of arithmetic in int8.
    # The best token is the same for all masks but one, whose two best tokens have almost the same
    # probability.
    main([str(BUILT_IN.path), str(tmp_path)])
    model = load_checkpoint(tmp_path).model.eval()
    tokenizer = Tokenizer.from_bundle(BUILT_IN)
    different = 0
    for prompt in BUILT_IN.golden.prompts:
        pair = prompt.text_pair
        encoded = tokenizer.encode(prompt.text if pair is None else TextPair(prompt.text, pair))
        ids = torch.from_numpy(encoded.input_ids)[None]
        masked = torch.zeros_like(ids, dtype=torch.bool)
        masked[0, encoded.mask_positions] = True
        with torch.inference_mode():
            log_probs_MV = model(ids, masked).log_softmax(-1)
        for row_V, fills in zip(log_probs_MV, prompt.fills, strict=True):
            different += int(row_V.argmax()) != fills[0].token
            expected = torch.tensor([fill.log_prob for fill in fills])
            found = row_V[[fill.token for fill in fills]]
            assert float((found - expected).abs().max()) <= 0.2
    assert different <= 1


OTHER_ARCHITECTURES: dict[str, tuple[dict[str, Any], str]] = {
    "narrow embeddings": ({"embedding_size": 10}, r"of BERT's architecture \(.*size mismatch"),
    "pre-norm": ({"norm_placement": "pre"}, "golden prompts the restored encoder reproduces"),
    "shared blocks": ({"block_order": (0, 0, 0)}, r"no tensor blocks\.1\.query"),
}


@pytest.mark.parametrize("name", OTHER_ARCHITECTURES)
def test_another_architecture_is_refused(name: str, tmp_path: Path) -> None:
    changes, message = OTHER_ARCHITECTURES[name]
    checkpoint = label_checkpoint("fills", **{"type_vocab_size": 0} | changes)
    write_label_bundle(tmp_path / "bundle", checkpoint)
    with pytest.raises(ValueError, match=message):
        restore(read_bundle(tmp_path / "bundle"))


def test_bundles_of_other_makers_and_tasks_are_refused(tmp_path: Path) -> None:
    tiny.write_bundle(tmp_path / "tiny")
    write_label_bundle(tmp_path / "labels", label_checkpoint("labels"))
    for name, message in {
        "tiny": "no Gelu or LayerNormalization",
        "labels": "must have the task fill-mask",
    }.items():
        with pytest.raises(ValueError, match=message):
            restore(read_bundle(tmp_path / name))


@pytest.mark.parametrize(
    ("section", "field", "value", "message"),
    [
        (None, "precision", "int8", r"no tensor blocks\.0\.query\.factors"),
        ("architecture", "num_heads", 1, "golden prompts the restored encoder reproduces"),
    ],
)
def test_a_wrong_description_is_refused(
    section: str | None,
    field: str,
    value: str | int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundle, output = tmp_path / "bundle", tmp_path / "restored"
    write_label_bundle(bundle, label_checkpoint("fills"))
    description = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    (description if section is None else description[section])[field] = value
    (bundle / "bundle.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main([str(bundle), str(output)])
    error = capsys.readouterr().err
    assert "must be a bundle of BERT's architecture" in error
    assert re.search(message, error)
    assert not output.exists()

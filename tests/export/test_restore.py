"""Restoration of a checkpoint from a bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.parameters.texts import TextPair
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.restore import main, restore
from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.rounding import RoundedEncoder
from tests.export.label_bundles import label_checkpoint, write_label_bundle
from tests.model.samples import plan_of, random_ids

BUILT_IN = read_bundle(default_bundle_path())
# between logits of about 1 in float32, whose sums have another order after restoration
TOLERANCE = 2e-5
TOKENS = 40  # the maximum of label_checkpoint


def _logits(model: TiedEncoder) -> Tensor:
    """Return the logits at every position of random rows."""
    ids_NT = random_ids((4, TOKENS), model.config.vocab_size)
    with torch.inference_mode():
        logits_MV: Tensor = model(ids_NT, torch.ones_like(ids_NT))
    return logits_MV


def bert(**changes: Any) -> Checkpoint:
    """Return a checkpoint whose weights training has rounded, so that its export changes none."""
    checkpoint = label_checkpoint("fills", **{"type_vocab_size": 0} | changes)
    trained = RoundedEncoder(checkpoint.model, plan_of(checkpoint.model))
    return replace(checkpoint, model=trained.rounded_copy(), rounding=trained.plan)


def _without_biases(model: TiedEncoder) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") and "norm" not in name:
                parameter.zero_()


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize(
    "changes", [{}, {"activation": "gelu_tanh", "norm_eps": 1e-5}], ids=["erf", "tanh, epsilon"]
)
def test_restored_encoder_has_the_logits_of_the_exported_encoder(
    changes: dict[str, Any], tmp_path: Path, *, biases: bool
) -> None:
    # The graph omits biases of zeros.
    checkpoint = bert(**changes)
    if not biases:
        _without_biases(checkpoint.model)
    write_label_bundle(tmp_path / "bundle", checkpoint, "int8")
    main([str(tmp_path / "bundle"), str(tmp_path / "restored")])
    restored = load_checkpoint(tmp_path / "restored")
    assert restored.tokenizer_json == checkpoint.tokenizer_json
    assert not restored.head_is_new
    assert restored.model.config == checkpoint.model.config
    found, expected = _logits(restored.model), _logits(checkpoint.model)
    assert float(expected.std()) > 0.5  # precondition of the tolerance
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


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
    "two token types": ({"type_vocab_size": 2}, r"no tensor embeddings\.position"),
    "shared blocks": ({"block_order": (0, 0, 0)}, r"no tensor blocks\.1\.query"),
}


@pytest.mark.parametrize("name", OTHER_ARCHITECTURES)
def test_another_architecture_is_refused(name: str, tmp_path: Path) -> None:
    changes, message = OTHER_ARCHITECTURES[name]
    write_label_bundle(tmp_path / "bundle", bert(**changes), "int8")
    with pytest.raises(ValueError, match=message):
        restore(read_bundle(tmp_path / "bundle"))


def test_other_tasks_and_descriptions_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The command ends before it writes anything.
    write_label_bundle(tmp_path / "labels", label_checkpoint("labels"))
    write_label_bundle(tmp_path / "fp32", label_checkpoint("fills"))
    write_label_bundle(tmp_path / "heads", bert(), "int8")
    file = tmp_path / "heads" / "bundle.json"
    description = json.loads(file.read_text(encoding="utf-8"))
    description["architecture"]["num_heads"] = 1
    file.write_text(json.dumps(description), encoding="utf-8")
    for name, message in {
        "labels": "must have the task fill-mask (got text-classification)",
        "fp32": "must be in int8 (got fp32); train on with the checkpoint from which",
        "heads": "golden prompts the restored encoder reproduces",
    }.items():
        with pytest.raises(SystemExit, match="2"):
            main([str(tmp_path / name), str(tmp_path / "restored")])
        assert message in capsys.readouterr().err
    assert not (tmp_path / "restored").exists()

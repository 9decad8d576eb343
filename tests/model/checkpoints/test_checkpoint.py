"""Round trips and one-line errors of fillmask's own checkpoints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from fillmask_model.checkpoints import checkpoint as checkpoint_module
from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.quantization.rounding_plan import RoundingPlan
from tests.environments import SOURCE_ROOTS
from tests.model.samples import (
    assert_same_weights,
    change_config,
    change_tensors,
    plan_of,
    random_encoder,
    random_ids,
    small_config,
)
from tests.model.tokenizers.tokenizer_samples import TOKENIZER_JSON

CONFIGS = {
    "bert": small_config(),
    "fixed positions, no head": small_config(
        positions="fixed", head_transform=False, head_bias=False, norm_eps=1e-5
    ),
    "packed": EncoderConfig.packed(
        vocab_size=61, d_model=24, num_layers=2, num_heads=3, max_positions=17
    ),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Directory of a valid checkpoint that a test may damage."""
    save_checkpoint(tmp_path, random_encoder(small_config()), TOKENIZER_JSON)
    return tmp_path


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_round_trip_is_bit_exact(
    tmp_path: Path, config: EncoderConfig, dtype: torch.dtype
) -> None:
    # The encoder is read in float32, whatever the precision of the checkpoint.
    model = random_encoder(config)
    with torch.no_grad():
        model.embeddings.word.weight[0, :3] = torch.tensor([-0.0, 1e-42, 3.3e38])
    tokenizer_json = TOKENIZER_JSON.replace(b"the", "\N{SNOWMAN}".encode()) + b"\r\n"
    model.to(dtype)
    save_checkpoint(tmp_path / "new" / "place", model, tokenizer_json)
    model.float().embeddings.compute_sinusoids()
    loaded = load_checkpoint(tmp_path / "new" / "place")
    assert loaded.model.config == config
    assert loaded.tokenizer_json == tokenizer_json
    assert not loaded.head_is_new
    assert not loaded.model.training
    before, after = model.state_dict(), loaded.model.state_dict()
    assert list(before) == list(after)
    for name, tensor in before.items():
        assert torch.equal(tensor.view(torch.int32), after[name].view(torch.int32)), name
    inputs = random_ids((2, 9), 61), random_ids((2, 9), 2)
    assert torch.equal(model(*inputs), loaded.model(*inputs))


def test_a_save_cut_short_keeps_the_checkpoint_before(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(tensors: dict[str, Tensor], path: Path, **_: Any) -> None:
        path.write_bytes(b"\x10")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_module, "save_file", half)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(directory, random_encoder(small_config(), seed=1), TOKENIZER_JSON)
    before = random_encoder(small_config()).embeddings.word.weight
    assert torch.equal(load_checkpoint(directory).model.embeddings.word.weight, before)


def leave_only_an_adapter(directory: Path) -> None:
    (directory / "config.json").unlink()
    (directory / "model.safetensors").rename(directory / "adapter_model.safetensors")


def spoil_three(tensors: dict[str, Tensor]) -> None:
    """Remove one tensor, add an unknown tensor, and change the shape of a third tensor."""
    tensors["bias"] = tensors.pop("head_bias")
    tensors["head.dense.bias"] = torch.zeros(1)


def write(name: str, content: bytes) -> Callable[[Path], Any]:
    """Return a function that replaces a file."""
    return lambda directory: (directory / name).write_bytes(content)


def configure(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes fields of config.json."""
    return lambda directory: change_config(directory, **changes)


BARE = EncoderConfig.packed(vocab_size=61, d_model=24, num_layers=2, num_heads=3, max_positions=17)
CLASSIFIER = ClassifierConfig(labels=("cat", "dog", "fox"), problem_type="regression")


@pytest.mark.parametrize(
    "config", [small_config(), small_config(tied=False), BARE], ids=["tied", "not tied", "bare"]
)
def test_a_classifier_is_saved_with_or_without_its_masked_language_model_head(
    tmp_path: Path, config: EncoderConfig
) -> None:
    # A checkpoint without the masked-language-model head gets a new one.
    model = random_encoder(config, classifier=CLASSIFIER)
    save_checkpoint(tmp_path / "both", model, TOKENIZER_JSON)
    save_checkpoint(tmp_path / "labels", model, TOKENIZER_JSON, fills=False)
    both, labels = load_checkpoint(tmp_path / "both"), load_checkpoint(tmp_path / "labels")
    assert (both.tasks, both.head_is_new) == (("fill-mask", "text-classification"), False)
    assert (labels.tasks, labels.head_is_new) == (("text-classification",), True)
    assert_same_weights(both.model, model)
    stored = load_file(tmp_path / "labels" / "model.safetensors")
    of_head = {n for n in model.state_dict() if n.startswith(("head", "output_table"))}
    assert stored.keys() == model.state_dict().keys() - of_head
    for name, tensor in labels.model.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]) == (name not in of_head), name
    assert labels.model.classifier is not None
    assert labels.model.classifier.config == CLASSIFIER


def test_a_new_head_has_the_initial_values_of_an_encoder(tmp_path: Path) -> None:
    config = small_config(tied=False, d_model=72)
    model = random_encoder(config, classifier=CLASSIFIER)
    save_checkpoint(tmp_path, model, TOKENIZER_JSON, fills=False)
    new = load_checkpoint(tmp_path).model
    weights = new.state_dict()
    assert weights["head_bias"].count_nonzero() == 0
    assert weights["head.dense.bias"].count_nonzero() == 0
    assert torch.equal(weights["head.norm.weight"], torch.ones(72))
    for name in ("head.dense.weight", "output_table.weight"):
        assert float(weights[name].std()) == pytest.approx(0.02, rel=0.1)
    assert all(parameter.requires_grad for parameter in new.parameters())


def test_a_checkpoint_needs_a_head_to_save(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="fills must be True"):
        save_checkpoint(tmp_path, random_encoder(small_config()), TOKENIZER_JSON, fills=False)
    assert not list(tmp_path.iterdir())


def as_classifier(change: Callable[[Path], Any], *, fills: bool = True) -> Callable[[Path], Any]:
    """Return a function that saves a classifier and then changes its files."""

    def replace(directory: Path) -> None:
        model = random_encoder(small_config(), classifier=CLASSIFIER)
        save_checkpoint(directory, model, TOKENIZER_JSON, fills=fills)
        change(directory)

    return replace


def relabel(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes fields of the classifier in config.json."""
    return configure(classifier=CLASSIFIER.to_dict() | changes)


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no config.json": (lambda d: (d / "config.json").unlink(), r"config\.json does not exist"),
    "an adapter": (
        leave_only_an_adapter,
        r"model\.bin \(got adapter_model\.safetensors\); merge it",
    ),
    "config.json is not JSON": (write("config.json", b"{"), r"config\.json is not valid JSON"),
    "config.json is not text": (
        write("config.json", b"\xff\xfe"),
        r"config\.json is not valid UTF-8",
    ),
    "nested too deeply": (
        write("config.json", b'{"a":' + b"[" * 100_000),
        r"config\.json is nested too deeply; use fewer levels",
    ),
    "a number too long": (
        write("config.json", b'{"a":' + b"1" * 5_000 + b"}"),
        r"config\.json has a number with too many digits; use at most 4300",
    ),
    "a name with a line end": (
        configure(**{"a\r\nb": 1}),
        r"config\.json: .*unknown: a\\r\\nb",
    ),
    "no model_type": (
        configure(model_type=None),
        r"model_type must be one of .*bert.* \(got None\)",
    ),
    "unknown field": (
        configure(rotary=True),
        r"config\.json: the configuration must have only known fields .*unknown: rotary",
    ),
    "missing fields": (
        configure(d_ff=None, num_heads=None),
        r"config\.json: every required field must be present \(missing: d_ff, num_heads\)",
    ),
    "tasks without a classifier": (
        configure(tasks=["text-classification"]),
        r"config\.json: tasks needs the field classifier, which is missing",
    ),
    "unknown tasks": (
        as_classifier(configure(tasks=["fill-mask", "ranking"])),
        r"config\.json: tasks must be .* \(got \['fill-mask', 'ranking'\]\)",
    ),
    "a classifier that is no object": (
        configure(classifier=["cat", "dog"]),
        r"config\.json: classifier must be an object with labels .* \(got \['cat', 'dog'\]\)",
    ),
    "labels of another number": (
        as_classifier(relabel(labels=["cat", "dog"])),
        r"classifier\.output\.weight must have the shape \(2, 24\) \(got \(3, 24\)\)",
    ),
    "a head that config.json denies": (
        as_classifier(
            lambda d: change_tensors(d, lambda old: old.update(head_bias=torch.zeros(61))),
            fills=False,
        ),
        "unknown: head_bias",
    ),
    "missing, left over and misshapen at once": (
        lambda d: change_tensors(d, spoil_three),
        r"\(missing: head_bias\); .* \(unknown: bias\); head\.dense\.bias must have the shape",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), SPOILT.values(), ids=SPOILT)
def test_a_broken_checkpoint_says_what_is_wrong(
    directory: Path, spoil: Callable[[Path], Any], message: str
) -> None:
    # The CheckpointError has one line and names the file, the field or the tensors.
    spoil(directory)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(directory)
    assert not re.search("\n|Traceback", str(caught.value))


def test_how_weights_were_rounded_survives(tmp_path: Path) -> None:
    # Saving a model without rounding factors removes those saved earlier. They must fit.
    model = random_encoder(small_config())
    plan = plan_of(model)
    save_checkpoint(tmp_path, model, TOKENIZER_JSON, plan)
    found = load_checkpoint(tmp_path).rounding
    assert found is not None
    assert found.factors.keys() == plan.factors.keys()
    for name, factors in plan.factors.items():
        assert torch.equal(found.factors[name], factors)
    save_checkpoint(tmp_path, model, TOKENIZER_JSON)
    assert load_checkpoint(tmp_path).rounding is None
    other = RoundingPlan(plan.factors | {"blocks.1.key": torch.ones(3)})
    save_checkpoint(tmp_path, model, TOKENIZER_JSON, other)
    message = r"rounding of the weights in .*: factors of blocks\.1\.key"
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path)


@pytest.mark.processes
def test_loading_does_not_import_the_compiler(tmp_path: Path) -> None:
    # its import takes longer than the weights of a small encoder
    save_checkpoint(tmp_path, random_encoder(small_config()), TOKENIZER_JSON)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "from fillmask_model.checkpoints.checkpoint import load_checkpoint\n"
        "from fillmask_model.quantization.smoothing import smoothing_factors\n"
        "load_checkpoint(Path(sys.argv[1]))\n"
        "smoothing_factors(np.ones((4, 8), np.float32), np.ones((4, 8), np.float32))\n"
        "print('torch' in sys.modules, 'torch._dynamo' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, SOURCE_ROOTS))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "False"]

"""config.json of a checkpoint, up to the shapes of the encoder's tensors."""

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from fillmask_model.checkpoints.assembly import assemble
from fillmask_model.checkpoints.checkpoint import OWN_MODEL_TYPE, check_config, read_own_config
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.checkpoints.mapping.reading import read_family_config
from fillmask_model.checkpoints.registry import FAMILIES, find_family
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from tests.fuzzing.target import FindingError, Target, check_message, memory_directory

_HEADS = ("ForMaskedLM", "ForSequenceClassification", "ForPreTraining")
# A block takes 3 ms, also without memory for its tensors, so only some inputs get blocks.
_MAX_LAYERS, _SHAPES_SHARE = 8, 1 / 8
_OWN: dict[str, Any] = {
    **EncoderConfig.packed(
        vocab_size=97, d_model=12, num_layers=2, num_heads=3, max_positions=19
    ).to_dict(),
    "model_type": OWN_MODEL_TYPE,
}
_TEXTS = ("gelu_new", "gelu_erf", "rotary", "absolute", "full_attention", "sliding_attention")


class CheckpointConfig(Target):
    """The configuration of a checkpoint of any family, or in fillmask's own format."""

    def __init__(self) -> None:
        self._path = memory_directory()
        self.more_words = (*_TEXTS, *FAMILIES, *(f"Bert{head}" for head in _HEADS))

    def seeds(self) -> Iterator[bytes]:
        import transformers  # noqa: PLC0415 - takes seconds, which a replay saves

        from tests.model.checkpoints.families.samples import SAMPLES  # noqa: PLC0415 - the same

        for number, sample in enumerate(SAMPLES.values()):
            fields = json.loads(
                getattr(transformers, f"{sample.family}Config")(**sample.fields).to_json_string()
            )
            fields["architectures"] = [sample.family + _HEADS[number % 2]]
            if number % 4 == 1:
                fields |= {"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
            yield json.dumps(fields).encode()
        yield json.dumps(_OWN).encode()
        head = ClassifierConfig(labels=("no", "yes")).to_dict()
        yield json.dumps(_OWN | {"classifier": head, "tasks": ["text-classification"]}).encode()
        local = {
            "rotary_base": 1e4,
            "local_rotary_base": 1e3,
            "local_layers": [1],
            "local_window": 4,
            "block_order": [0, 0],
            "gated_ffn": True,
        }
        yield json.dumps(_OWN | local).encode()

    def check(self, data: bytes) -> None:
        (self._path / "config.json").write_bytes(data)
        # a message may show a value whole, but must not multiply it
        most = 2_000 + 12 * len(data)
        try:
            check_config(self._path)
        except CheckpointError as error:
            check_message(str(error), most)
            return
        fields = json.loads(data)
        model_type = fields.get("model_type")
        try:
            if model_type == OWN_MODEL_TYPE:
                config, classifier = read_own_config(fields)
                _check_round_trip(config)
            else:
                found = read_family_config(find_family(fields, "")[1], fields, _stored(fields))
                config, classifier = found.parsed.config, found.classifier
        except ValueError as error:
            check_message(str(CheckpointError(str(error))), most)
            return
        if config.num_layers <= _MAX_LAYERS and zlib.crc32(data) < _SHAPES_SHARE * 2**32:
            _check_shapes(config, classifier)


def _stored(fields: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the output layer of any head, with a row for each label of the configuration."""
    labels = fields.get("id2label")
    rows = len(labels) if isinstance(labels, dict) else 2
    heads = {head.output for family in FAMILIES.values() for head in family.classifiers.values()}
    return {f"{head}.weight": torch.empty((rows, 1), device="meta") for head in heads}


def _check_round_trip(config: EncoderConfig) -> None:
    if EncoderConfig.from_dict(json.loads(json.dumps(config.to_dict()))) != config:
        raise FindingError(f"{config!r} changes when it is written and read")


def _check_shapes(config: EncoderConfig, classifier: ClassifierConfig | None) -> None:
    """Check that an accepted configuration describes an encoder, which lacks all its weights."""
    try:
        assemble(config, classifier, {}, str, head_is_new=True)
    except ValueError as error:
        if not str(error).startswith("every tensor must be present"):
            raise


TARGET = CheckpointConfig

"""Reader of the config.json of a Hugging Face checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fillmask_model.checkpoints.mapping.classification import read_classifier, select_classifier
from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.classifier import ClassifierConfig

_MODELS = "AutoModel"  # the start of the names of model classes in auto_map


@dataclass(frozen=True, slots=True)
class FamilyConfig:
    """Configuration of a Hugging Face checkpoint from its config.json.

    Attributes:
        family: mapping of the checkpoint, with its classification head.
        parsed: configuration of the encoder.
        classifier: configuration of the classification head. None for a checkpoint without labels.
    """

    family: Family
    parsed: ParsedConfig
    classifier: ClassifierConfig | None


def read_family_config(
    family: Family, values: Mapping[str, Any], stored: Mapping[str, Tensor] | None
) -> FamilyConfig:
    """Read the config.json of a Hugging Face checkpoint.

    Args:
        values: the file's object.
        stored: tensors by their names in the checkpoint. None to check only what needs no weights.
    """
    fields = Fields(values)
    _check_storage(family, fields)
    head = select_classifier(family, fields)
    parsed = family.read(fields)
    classifier = None
    if head is not None and stored is not None:
        family = family.with_classifier(head)
        classifier = read_classifier(head, fields, parsed.config, stored)
    return FamilyConfig(family, parsed, classifier)


def _check_storage(family: Family, fields: Fields) -> None:
    """Check what transformers reads for every model: its code and the form of its weights."""
    for name, code in fields.section("auto_map").items():
        # an entry of a tokenizer is a list
        shown = code if isinstance(code, str) else repr(code)
        local = shown.rpartition("--")[2]  # without the repository
        known = local.startswith(family.code) or local.rpartition(".")[2].startswith(family.code)
        if name.startswith(_MODELS) and not known:
            raise ValueError(
                f"auto_map names the code {shown}, which fillmask never runs and does not know; "
                "use a checkpoint whose class is part of transformers"
            )
    fields.expect("pruned_heads", {}, None)
    if fields.get("quantization_config", None) is not None:
        raise ValueError(
            "quantization_config must be missing, because fillmask rounds weights itself; use the "
            "checkpoint before its quantization"
        )

"""Reader of the config.json of a Hugging Face checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fillmask_model.checkpoints.families.classification import read_classifier, select_classifier
from fillmask_model.checkpoints.families.family import Family, ParsedConfig
from fillmask_model.checkpoints.families.fields import Fields
from fillmask_model.encoder.classifier import ClassifierConfig


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


def check_family_config(family: Family, values: Mapping[str, Any]) -> None:
    """Check the fields of a Hugging Face config.json that need no weights.

    Args:
        values: the file's object, without `model_type`.

    Raises:
        ValueError: the checkpoint has a head for another task, or a field is missing or
            unsupported.
    """
    fields = Fields(values)
    select_classifier(family, fields)
    family.read(fields)


def read_family_config(
    family: Family, values: Mapping[str, Any], stored: Mapping[str, Tensor]
) -> FamilyConfig:
    """Read the config.json of a Hugging Face checkpoint.

    Args:
        values: the file's object, without `model_type`.
        stored: tensors by their names in the checkpoint.

    Raises:
        ValueError: a field is unknown, missing or unsupported.
    """
    fields = Fields(values)
    head = select_classifier(family, fields)
    parsed = family.read(fields)
    classifier = None
    if head is not None:
        family = family.with_classifier(head)
        classifier = read_classifier(head, fields, parsed.config, stored)
    fields.reject_unknown()
    return FamilyConfig(family, parsed, classifier)

"""Reader of the config.json of a Hugging Face checkpoint, with its classification head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from fillmask_model.checkpoints.mapping.family import ClassifierMapping, Family, ParsedConfig
from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig

_MODELS = "AutoModel"  # the start of the names of model classes in auto_map
_OTHER_TASKS = (
    "ForMultipleChoice",
    "ForProteinFolding",
    "ForQuestionAnswering",
)
_SINGLE_LABEL, _MULTI_LABEL = "single_label_classification", "multi_label_classification"
_DEFAULT_LABELS = 2  # default of num_labels in transformers


class FamilyConfig(NamedTuple):
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
    head = _select_classifier(family, fields)
    parsed = family.read(fields)
    classifier = None
    if head is not None and stored is not None:
        family = family.with_classifier(head)
        classifier = _read_classifier(head, fields, parsed.config, stored)
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


def _select_classifier(family: Family, fields: Fields) -> ClassifierMapping | None:
    """Select the classification head that `architectures` names.

    Returns:
        The mapping of the head, or None for a checkpoint without a classification head.
    """
    architectures: Any = fields.get("architectures", [])
    names = architectures if isinstance(architectures, list) else [architectures]
    # the end of "BertForMaskedLM" is "ForMaskedLM"
    ends = {f"For{name.partition('For')[2]}": name for name in names if isinstance(name, str)}
    for end in ends:
        if end in family.classifiers:
            return family.classifiers[end]
    if other := [name for end, name in ends.items() if end in _OTHER_TASKS]:
        raise ValueError(
            "architectures must name a class for masked language modelling or for classification "
            f"of texts or of tokens (got {other[0]!r})"
        )
    return None


def _read_classifier(
    head: ClassifierMapping, fields: Fields, config: EncoderConfig, stored: Mapping[str, Tensor]
) -> ClassifierConfig:
    """Read the configuration of a classification head.

    A head with one label has the problem type "multi_label_classification" unless config.json names
    "regression". By default the service then computes the scores with the sigmoid, as in the
    pipeline of transformers.

    Args:
        stored: tensors by their names in the checkpoint.
    """
    choices: dict[str, Any] = {
        "activation": head.activation if head.dense else None,
        "labels": head.labels,
        "pooling": head.pooling,
    }
    if head.choices is not None:
        choices |= head.choices(fields, config)
    if head.pooling == "tokens":
        choices |= {"pooling": "tokens", "pool_last": False}
    if not head.labels:
        labels = _read_labels(fields, f"{head.output}.weight", stored)
        problem_type = fields.get("problem_type", _SINGLE_LABEL)
        if choices["pooling"] == "tokens":
            problem_type = _SINGLE_LABEL  # as in the pipeline of transformers
        elif len(labels) == 1 and problem_type == _SINGLE_LABEL:
            problem_type = _MULTI_LABEL
        choices |= {"labels": labels, "problem_type": problem_type}
    return ClassifierConfig(**choices)


def _read_labels(fields: Fields, output: str, stored: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return the names of the labels in the order of the rows of the tensor `output`."""
    if output not in stored:
        raise ValueError(
            f"the weights must have the tensor {output} of the class in architectures; "
            "correct architectures or add the tensor"
        )
    shape = stored[output].shape
    if not shape or not all(shape):
        raise ValueError(
            f"{output} must be a matrix with a row for each label (got {tuple(shape)})"
        )
    rows = shape[0]
    labels, number = fields.get("id2label", None), fields.get("num_labels", None)
    # in transformers, a contradiction makes id2label void
    if labels is None or (isinstance(labels, dict) and number not in (None, len(labels))):
        if rows != (_DEFAULT_LABELS if number is None else number):
            raise ValueError(
                f"num_labels must be {rows}, the number of rows of {output} (got {number!r})"
            )
        return tuple(f"LABEL_{row}" for row in range(rows))
    try:
        by_row = {int(key): name for key, name in labels.items()}
    except (AttributeError, ValueError):
        by_row = {}
    if by_row.keys() != set(range(rows)):
        got = list(labels) if isinstance(labels, dict) else labels
        raise ValueError(
            f"id2label must be an object with the keys 0 to {rows - 1}, one for each row of "
            f"{output} (got {got!r})"
        )
    for row, name in by_row.items():
        if not isinstance(name, str | int | float) or not str(name).strip():
            raise ValueError(f"id2label must have a non-blank text at {row} (got {name!r})")
    names = tuple(str(by_row[row]) for row in range(rows))
    if len(set(names)) < rows:
        ((name, _),) = Counter(names).most_common(1)
        raise ValueError(f"id2label must have a different text at each key (got {name!r} twice)")
    return names

"""Renaming of a checkpoint's tensors to the encoder's names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import HEAD_BIAS, HEAD_PREFIXES, OUTPUT_TABLE, TABLE
from fillmask_model.files import listed

POSITIONS = "embeddings.position.weight"
_POOLER = "pooler"  # module of the encoder that classification heads use
_TASK_HEAD = re.compile(r"(classifier|pre_classifier|qa_outputs|sequence_summary)\..*")


def encoder_tensors(
    stored: Mapping[str, Tensor], family: Family, parsed: ParsedConfig
) -> dict[str, Tensor]:
    """Return a checkpoint's tensors by their names in `TiedEncoder`.

    Args:
        stored: tensors by their names in the checkpoint.

    Raises:
        ValueError: a name is unknown or duplicate, or a tied checkpoint has two different tables or
            output biases.
    """
    plain: dict[str, str] = {}
    for name in stored:
        short = family.strip_prefix(name)
        if short in plain:
            raise ValueError(f"{name} and {plain[short]} are the same tensor; remove one of them")
        plain[short] = name
    found: dict[str, Tensor] = {}
    unknown = []
    output = {f"{family.decoder}.weight", f"{family.decoder}.bias", family.bias}
    for short, name in plain.items():
        ours = family.encoder_names(short)
        if not ours:
            if short not in output and not family.is_ignored(short):
                unknown.append(name)
            continue
        # a tensor with too few rows to split fails the check of shapes later
        found |= zip(ours, stored[name].chunk(len(ours)), strict=False)
    if unknown:
        advice = "remove every unknown tensor or use a supported architecture"
        if any(_TASK_HEAD.fullmatch(name) for name in unknown):
            advice = (
                "set architectures in config.json to the name of a class for sequence "
                "classification if the unknown tensors belong to its head, otherwise remove every "
                "unknown tensor"
            )
        raise ValueError(
            f"the checkpoint must have only known tensors (unknown: {listed(unknown)}); {advice}"
        )
    if POSITIONS in found:
        found[POSITIONS] = found[POSITIONS][parsed.skipped_positions :]
    if parsed.convert is not None:
        parsed.convert(found)
    at_output = {short: stored[plain[short]] for short in output & plain.keys()}
    return found | _output(at_output, found, family, parsed.config)


def stored_name(family: Family, ours: str) -> str:
    """Return the name of an encoder's tensor in the checkpoints of a family, for messages."""
    at_output = {
        OUTPUT_TABLE: f"{family.decoder}.weight",
        HEAD_BIAS: family.bias or f"{family.decoder}.bias",
    }
    if ours in at_output:
        return at_output[ours]
    for theirs, names in family.names.items():
        for name in (names,) if isinstance(names, str) else names:
            pattern = re.escape(name).replace(r"\{\}", r"(\d+)")
            if match := re.fullmatch(rf"{pattern}(\.\w+)?", ours):
                *numbers, suffix = match.groups("")
                of_head = ours.startswith((*HEAD_PREFIXES, "classifier."))
                prefix = "" if of_head and not theirs.startswith(_POOLER) else family.prefix
                # ALBERT's second number, the layer within its group, is always 0
                return prefix + theirs.format(*numbers, 0) + suffix
    return ours


def _output(
    stored: Mapping[str, Tensor], found: Mapping[str, Tensor], family: Family, config: EncoderConfig
) -> dict[str, Tensor]:
    """Return the bias and the untied table of the output projection by name."""
    weight, bias = f"{family.decoder}.weight", f"{family.decoder}.bias"
    ours = {}
    if not config.tied:
        if weight in stored:
            ours[OUTPUT_TABLE] = stored[weight]
    elif weight in stored and TABLE in found and not torch.equal(stored[weight], found[TABLE]):
        raise ValueError(
            f"{weight} must be equal to the tied embedding table; "
            "set tie_word_embeddings to false in config.json to use both"
        )
    biases = [stored[name] for name in (bias, family.bias) if name in stored]
    if biases:
        if config.tied and len(biases) > 1 and not torch.equal(*biases):
            raise ValueError(f"{bias} must be equal to {family.bias}; remove one of them")
        ours[HEAD_BIAS] = biases[0]
    return ours

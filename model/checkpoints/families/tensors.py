"""A family's tensors under the encoder's names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from model.checkpoints.families.family import Family, Reading
from model.encoder.config import EncoderConfig
from model.encoder.encoder import OUTPUT_TABLE, TABLE

HEAD_BIAS = "head_bias"
POSITIONS = "embeddings.position.weight"
# of the encoder's tensors, those that an encoder without a head lacks
HEAD_PREFIXES = ("head.", HEAD_BIAS)


def encoder_tensors(
    stored: Mapping[str, Tensor], family: Family, reading: Reading
) -> dict[str, Tensor]:
    """What a checkpoint stores, by the names of `TiedEncoder`.

    Args:
        stored: the checkpoint's tensors by its own names.
        family: whose checkpoint it is.
        reading: what its config.json says.

    Raises:
        ValueError: a name is unknown or there twice, or a tied checkpoint has two tables.
    """
    plain: dict[str, str] = {}
    for name in stored:
        short = family.plain(name)
        if short in plain:
            raise ValueError(f"{name} is in the checkpoint under a second name, {plain[short]}")
        plain[short] = name
    found: dict[str, Tensor] = {}
    unknown = []
    output = {f"{family.decoder}.weight", f"{family.decoder}.bias", family.bias}
    for short, name in plain.items():
        if short in output or family.plays_no_part(short):
            continue
        ours = family.renamed(short)
        if not ours:
            unknown.append(name)
            continue
        # a tensor that cannot be cut into as many parts has the wrong shape, which shows later
        found |= zip(ours, stored[name].chunk(len(ours)), strict=False)
    if unknown:
        raise ValueError(f"tensors this family does not have: {', '.join(unknown)}")
    if POSITIONS in found:
        found[POSITIONS] = found[POSITIONS][reading.skipped_positions :]
    at_output = {short: stored[plain[short]] for short in output & plain.keys()}
    return found | _output(at_output, found, family, reading.config)


def stored_name(family: Family, ours: str) -> str:
    """What a family's checkpoints call a tensor of the encoder, for errors that users read."""
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
                prefix = "" if ours.startswith(HEAD_PREFIXES) else family.prefix
                # ALBERT's second number, that of a layer in its group, is always 0
                return prefix + theirs.format(*numbers, 0) + suffix
    return ours


def _output(
    stored: Mapping[str, Tensor], found: Mapping[str, Tensor], family: Family, config: EncoderConfig
) -> dict[str, Tensor]:
    """The map from the head to the vocabulary: its table, where it has its own, and its bias."""
    weight, bias = f"{family.decoder}.weight", f"{family.decoder}.bias"
    ours = {}
    if not config.tied:
        if weight in stored:
            ours[OUTPUT_TABLE] = stored[weight]
    elif weight in stored and TABLE in found and not torch.equal(stored[weight], found[TABLE]):
        raise ValueError(
            f"{weight} differs from the embedding table, and config.json says that they are tied: "
            "with tie_word_embeddings = false both are taken"
        )
    biases = [stored[name] for name in (bias, family.bias) if name in stored]
    if biases:
        if config.tied and len(biases) > 1 and not torch.equal(*biases):
            raise ValueError(f"{bias} differs from {family.bias}, and the two are one")
        ours[HEAD_BIAS] = biases[0]
    return ours

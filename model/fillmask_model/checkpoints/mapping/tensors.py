"""Renaming of a checkpoint's tensors to the encoder's names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from fillmask_model.checkpoints.mapping.family import Family, ParsedConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import HEAD_BIAS, HEAD_PREFIXES, OUTPUT_TABLE, TABLE
from fillmask_model.files import listed

POSITIONS = "embeddings.position.weight"
_POOLER = "pooler"  # module of the encoder that classification heads use
_INNER_HEADS = (f"{_POOLER}.", "contact_head.")  # modules of the encoder that fill no masks
_TASK_HEAD = re.compile(r"(classifier|pre_classifier|qa_outputs|sequence_summary)\..*")
# of torch.compile, data parallelism, FSDP and activation checkpointing
_WRAPPERS = {"_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


def unwrap(stored: Mapping[str, Tensor], family: Family) -> dict[str, Tensor]:
    """Return tensors by their names without the modules that wrap the model or parts of it.

    Such a module is one of PyTorch's, or any that contains all tensors, as Lightning's often do.
    """
    plain: dict[str, str] = {}
    for name in stored:
        _add_name(plain, ".".join(one for one in name.split(".") if one not in _WRAPPERS), name)
    while plain and _wraps(outer := min(plain).partition(".")[0] + ".", plain, family):
        plain = {short.removeprefix(outer): name for short, name in plain.items()}
    return {short: stored[name] for short, name in plain.items()}


def _wraps(outer: str, names: Iterable[str], family: Family) -> bool:
    inner = tuple(outer + prefix for prefix in family.prefixes)
    is_encoder = outer in family.prefixes and not any(name.startswith(inner) for name in names)
    return not is_encoder and all(name.startswith(outer) for name in names)


def _add_name(names: dict[str, str], short: str, name: str) -> None:
    if short in names:
        raise ValueError(f"{name} and {names[short]} are the same tensor; remove one of them")
    names[short] = name


def encoder_tensors(
    stored: Mapping[str, Tensor], family: Family, parsed: ParsedConfig
) -> tuple[dict[str, Tensor], list[str]]:
    """Return a checkpoint's tensors by their names in `TiedEncoder`.

    Args:
        stored: tensors by their names in the checkpoint.

    Returns:
        The tensors, and the names of those that belong to heads for other tasks.
    """
    plain: dict[str, str] = {}
    for name in stored:
        _add_name(plain, family.strip_prefix(name), name)
    output = {f"{family.decoder}.weight", f"{family.decoder}.bias", family.bias}
    found: dict[str, Tensor] = {}
    others = []
    for short, name in plain.items():
        if ours := family.encoder_names(short):
            # a tensor with too few rows to split fails the check of shapes later
            found |= zip(ours, stored[name].chunk(len(ours)), strict=False)
        elif short not in output and not family.is_buffer(short):
            others.append(name)
    prefixed = any(name.startswith(family.prefixes) for name in stored)
    unused = {name for name in others if _is_of_head(name, family, prefixed=prefixed)}
    if not (output & plain.keys() or "classifier.output" in family.names.values()):
        unused = {name for name in unused if not _TASK_HEAD.fullmatch(name)}
    if unknown := [name for name in others if name not in unused]:
        raise ValueError(
            f"the checkpoint must have only known tensors (unknown: {listed(unknown)}); "
            f"{_advice(unknown, family)}"
        )
    if POSITIONS in found:
        found[POSITIONS] = found[POSITIONS][parsed.skipped_positions :]
    if parsed.convert is not None:
        parsed.convert(found)
    at_output = {short: stored[plain[short]] for short in output & plain.keys()}
    return found | _output(at_output, found, family, parsed.config), sorted(unused)


def _is_of_head(name: str, family: Family, *, prefixed: bool) -> bool:
    """Return whether an unknown tensor belongs to a head for another task, not to the encoder."""
    short = family.strip_prefix(name)
    depth = 2 if short.startswith("cls.") else 1  # BERT has a list of heads
    module = "".join(f"{part}." for part in short.split(".")[:depth])
    known = (f"{one}." for one in (*family.names, family.decoder, family.bias))
    outside = prefixed and not any(f".{prefix}" in f".{name}" for prefix in family.prefixes)
    of_head = outside or short.startswith(_INNER_HEADS)
    return of_head and not any(one.startswith(module) for one in known)


def _advice(unknown: list[str], family: Family) -> str:
    if any(_TASK_HEAD.fullmatch(name) for name in unknown):
        return (
            "set architectures in config.json to the name of a class for sequence classification "
            "if the unknown tensors belong to its head, otherwise remove every unknown tensor"
        )
    wrapped = next((name for name in unknown if f".{family.prefix}" in name), "")
    if wrapper := wrapped.rpartition(family.prefix)[0]:
        return f"remove the prefix {wrapper} from the names of the tensors"
    return "remove every unknown tensor or use a supported architecture"


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
    """Return the bias and the table of the output projection by name, if `found` lacks them."""
    weight, bias = f"{family.decoder}.weight", f"{family.decoder}.bias"
    ours = {}
    table = TABLE if config.tied else OUTPUT_TABLE
    if weight in stored and table not in found:
        ours[table] = stored[weight]
    elif weight in stored and not torch.equal(stored[weight], found[TABLE]):
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

"""Loads of training rows, each small enough to travel with a step.

A load has a slice of every array of rows, so that each load is a sample of the whole text, and the
held-out rows. The step that brings a load trains on it and on all loads that arrived before it.

Shapes: R rows, T tokens.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fillmask_model.data.corpus import SpecialTokens
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.training.lease.folders import Folder, write_folder
from fillmask_model.training.lease.plan import LeasePlan

LOAD, ROWS = "load", "rows"
PACKED, SHORT = "packed", "short_"
HELD_OUT = "held_out_"  # prefix of the held-out arrays with the names of the training's arrays
Rows = dict[str, NDArray[np.uint16]]  # (R, T) by name

MOST_IDS = 1 << 16
_ID_BYTES = 2
_MANIFEST_BYTES = 16 << 10
# ids of two bytes: alignment to two bytes saves 1 % (1.12 instead of 1.13 bytes per token)
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1}]
_BYTES_PER_TOKEN = 1.1  # of English text, as the estimate for the first load
_CAUTION = 0.98  # of the limit, since a load compresses a little better or worse than the last


@dataclass(frozen=True, slots=True)
class PackFields:
    """What all loads of a pack and the weights that belong to them have in common.

    Attributes:
        plan: plan of the training.
        encoder: configuration of the encoder.
        mask, pad: ids of these special tokens.
        special: ids of all special tokens.
        tokenizer: SHA-256 of tokenizer.json.
        texts: SHA-256 of the texts.
    """

    plan: LeasePlan
    encoder: EncoderConfig
    mask: int
    pad: int
    special: tuple[int, ...]
    tokenizer: str
    texts: str

    @classmethod
    def of(
        cls,
        plan: LeasePlan,
        encoder: EncoderConfig,
        special: SpecialTokens,
        tokenizer_json: bytes,
        texts: str,
    ) -> PackFields:
        """Return the fields of a pack.

        Raises:
            ValueError: a step cannot have fixed shapes with this encoder, or the plan's rows do not
                fit it.
        """
        if encoder.vocab_size > MOST_IDS:
            raise ValueError(
                f"the vocabulary must have at most {MOST_IDS} tokens, ids of two bytes (got "
                f"{encoder.vocab_size})"
            )
        # the tables of these parts reach the GPU from the CPU in every forward pass
        parts = ("rotary_base", "relative_buckets", "token_dropout_id")
        if found := [name for name in parts if getattr(encoder, name) not in {None, 0}]:
            raise ValueError(
                "the encoder must have only parts that a CUDA graph can contain (got "
                f"{', '.join(found)}); choose learned or fixed positions and no token dropout"
            )
        longest = max(plan.row_tokens, plan.short_lengths[-1] if plan.short_tokens else 0)
        if longest > encoder.max_positions:
            raise ValueError(
                f"rows must have at most {encoder.max_positions} tokens, the positions of the "
                f"encoder (got {longest}); reduce row_tokens or short_lengths of the plan"
            )
        digest = hashlib.sha256(tokenizer_json).hexdigest()
        return cls(plan, encoder, special.mask, special.pad, special.all, digest, texts)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> PackFields:
        """Create the fields from those that `to_dict` returns."""
        plan, encoder = (
            LeasePlan.from_dict(fields["plan"]),
            EncoderConfig.from_dict(fields["encoder"]),
        )
        return cls(
            **(fields | {"plan": plan, "encoder": encoder, "special": tuple(fields["special"])})
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as JSON has them."""
        return {
            "plan": self.plan.to_dict(),
            "encoder": self.encoder.to_dict(),
            "mask": self.mask,
            "pad": self.pad,
            "special": list(self.special),
            "tokenizer": self.tokenizer,
            "texts": self.texts,
        }

    @property
    def pack(self) -> str:
        """Identity of the pack, which loads and weights must share."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def write_loads(
    directory: Path,
    training: Mapping[str, NDArray[np.integer[Any]]],
    held_out: Mapping[str, NDArray[np.integer[Any]]],
    fields: PackFields,
    *,
    first_bytes: int,
    load_bytes: int,
    report: Callable[[str], None],
) -> list[Folder]:
    """Write training rows in order as folders load_1, load_2 and so on, up to the last row.

    Args:
        training: rows (R, T) by name.
        held_out: rows that every load has.
        first_bytes: maximum size of the first load, which travels beside weights.
        load_bytes: maximum size of each further load.
        report: function that gets a line about each load.

    Raises:
        ValueError: a limit is too small for a load.
    """
    kept = {HELD_OUT + name: rows for name, rows in held_out.items()}
    rate = _BYTES_PER_TOKEN * sum(rows.size for rows in training.values())
    folders: list[Folder] = []
    start = 0.0
    while start < 1:
        limit = (load_bytes if folders else first_bytes) - _MANIFEST_BYTES
        end = min(1.0, start + _CAUTION * max(0, limit) / rate)
        while True:
            arrays = _slices(training, start, end) | kept
            tokens = sum(rows.size for n, rows in arrays.items() if not n.startswith(HELD_OUT))
            if not tokens:
                raise ValueError(
                    f"a load must have room for rows beside {sum(r.size for r in kept.values())} "
                    f"held-out tokens (got {limit} bytes); increase the limit or reduce "
                    "evaluation_rows of the plan"
                )
            content = _compress(arrays)
            if len(content) <= limit:
                break
            end = start + (end - start) * _CAUTION * limit / len(content)
        rate = len(content) / (end - start)
        folders.append(
            write_folder(
                directory / f"{LOAD}_{len(folders) + 1}",
                LOAD,
                {"pack": fields.to_dict(), "arrays": {n: list(a.shape) for n, a in arrays.items()}},
                {ROWS: content},
                part_bytes=len(content),
            )
        )
        report(
            f"{folders[-1].directory}: {tokens:,} tokens, {len(content) / 2**20:.1f} MiB, "
            f"{len(content) / tokens:.2f} bytes per token"
        )
        start = end
    return folders


def read_rows(load: Folder) -> tuple[Rows, Rows]:
    """Return the training rows and the held-out rows of a load by name.

    Raises:
        ValueError: the load is damaged or incomplete.
    """
    plain = lzma.decompress(load.read(ROWS))
    arrays: Rows = {}
    start = 0
    for name, shape in load.fields["arrays"].items():
        count = int(np.prod(shape))
        ids = np.frombuffer(plain, np.dtype("<u2"), count, start)
        arrays[name] = ids.reshape(shape)
        start += _ID_BYTES * count
    held_out = {
        name.removeprefix(HELD_OUT): rows
        for name, rows in arrays.items()
        if name.startswith(HELD_OUT)
    }
    return {n: rows for n, rows in arrays.items() if not n.startswith(HELD_OUT)}, held_out


def _slices(
    training: Mapping[str, NDArray[np.integer[Any]]], start: float, end: float
) -> dict[str, NDArray[np.integer[Any]]]:
    """Return the rows of each array between two shares of its length."""
    return {
        name: rows[round(start * len(rows)) : round(end * len(rows))]
        for name, rows in training.items()
    }


def _compress(arrays: Mapping[str, NDArray[np.integer[Any]]]) -> bytes:
    compressor = lzma.LZMACompressor(format=lzma.FORMAT_XZ, filters=_FILTERS)
    pieces = [compressor.compress(rows.astype("<u2").tobytes()) for rows in arrays.values()]
    return b"".join([*pieces, compressor.flush()])

"""Packing at home of everything that a borrowed machine needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fillmask_model.data.corpus import (
    SpecialTokens,
    pack_rows,
    read_documents,
    read_tokenizer,
)
from fillmask_model.data.row_files import sha256_of
from fillmask_model.data.short_texts import short_rows
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.files import atomic_replace
from fillmask_model.training.evaluation import EVALUATION_SEED
from fillmask_model.training.lease.folders import MIB, Folder
from fillmask_model.training.lease.loads import PACKED, SHORT, PackFields, write_loads
from fillmask_model.training.lease.plan import LeasePlan, Progress
from fillmask_model.training.lease.weights import START_BITS, write_weights

START, TOKENIZER = "start", "tokenizer.json"
HELD_OUT_TEXTS = 8  # held-out short texts for each held-out packed row, about as many tokens
_KINDS = 2  # distinguishes the generator of the documents' kinds from those of other draws


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOptions:
    """What to pack.

    Attributes:
        files: training texts, whose documents are in random order.
        held_out_files: texts to evaluate on.
        load_bytes: how much may travel with a step beside the working tree.
        short_documents: share of the documents that become short texts instead of packed rows.
            Every document travels once.
        stopless_share: share of the short texts that lose their final full stop.
    """

    files: list[Path]
    held_out_files: list[Path]
    load_bytes: int = 29 * MIB
    short_documents: float = 0.5
    stopless_share: float = 0.5

    def __post_init__(self) -> None:
        for name in ("short_documents", "stopless_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1 (got {getattr(self, name)!r})")


def write_pack(
    directory: Path,
    model: TiedEncoder,
    tokenizer_json: bytes,
    plan: LeasePlan,
    options: PackOptions,
    report: Callable[[str], None],
) -> list[Folder]:
    """Write the folders start, load_1, load_2 and so on, and tokenizer.json.

    The first load fits beside the start, and each further load alone.

    Args:
        model: encoder to start from, on the CPU.
        report: function that gets a line about each folder.

    Returns:
        The start and the loads.

    Raises:
        ValueError: the plan does not fit the encoder, or the limit is too small.
    """
    tokenizer = read_tokenizer(tokenizer_json)
    special = SpecialTokens.from_tokenizer(tokenizer)
    texts = sha256_of([*options.files, *options.held_out_files])
    fields = PackFields.of(plan, model.config, special, tokenizer_json, texts)
    directory.mkdir(parents=True, exist_ok=True)
    with atomic_replace(directory / TOKENIZER) as temporary:
        temporary.write_bytes(tokenizer_json)
    start = write_weights(directory / START, model, fields, Progress(), bits=START_BITS)
    report(f"{start.directory}: {start.size / MIB:.1f} MiB")

    def rows_of(
        documents: Callable[[], Iterator[str]], seed: int, shares: tuple[float, float]
    ) -> dict[str, NDArray[np.int32]]:
        """Return the packed rows and the short texts of documents.

        Args:
            shares: share of the documents for short texts, and of the texts without a full stop.
        """
        packed = _documents(documents(), shares[0], seed, short=False)
        rows = {PACKED: pack_rows(packed, tokenizer, special, plan.row_tokens)}
        if not plan.short_tokens:
            return rows
        cut = _documents(documents(), shares[0], seed, short=True)
        longest = plan.short_lengths[-1]
        short = short_rows(cut, tokenizer, special, seed, longest, shares[1])
        return rows | {f"{SHORT}{length:04}": texts for length, texts in short.items()}

    share = options.short_documents if plan.short_tokens else 0.0
    training = rows_of(
        lambda: read_documents(options.files), plan.seed, (share, options.stopless_share)
    )
    held_out = rows_of(
        lambda: read_documents(options.held_out_files),
        EVALUATION_SEED,
        (share, options.stopless_share),
    )
    loads = write_loads(
        directory,
        training,
        _sample(held_out, plan.evaluation_rows),
        fields,
        first_bytes=options.load_bytes - start.size,
        load_bytes=options.load_bytes,
        report=report,
    )
    return [start, *loads]


def _documents(
    documents: Iterable[str], short_share: float, seed: int, *, short: bool
) -> Iterator[str]:
    """Yield the documents that become short texts, or the others."""
    generator = np.random.default_rng([seed, _KINDS])
    for document in documents:
        if (generator.random() < short_share) == short:
            yield document


def _sample(held_out: dict[str, NDArray[np.int32]], count: int) -> dict[str, NDArray[np.int32]]:
    """Return the first packed rows, and short texts of all lengths by their frequency."""
    texts = sum(len(rows) for name, rows in held_out.items() if name != PACKED)
    share = min(1.0, HELD_OUT_TEXTS * count / texts) if texts else 1.0
    return {
        name: rows[: count if name == PACKED else round(share * len(rows))]
        for name, rows in held_out.items()
    }

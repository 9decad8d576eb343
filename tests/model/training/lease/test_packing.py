"""Packing at home."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.training.lease.folders import Folder
from fillmask_model.training.lease.loads import read_rows
from fillmask_model.training.lease.packing import PackOptions, _documents, write_pack
from fillmask_model.training.lease.weights import read_weights
from tests.model.samples import repetitive_text, small_config
from tests.model.training.lease.samples import tiny_plan, write_tiny_pack


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_every_document_travels_once(share: float) -> None:
    # About the share of the documents become short texts, the others stay whole, all in order.
    numbers = list(map(str, range(1_000)))
    short, packed = (list(_documents(numbers, share, 0, short=kind)) for kind in (True, False))
    assert sorted([*short, *packed], key=int) == numbers
    assert short == sorted(short, key=int)
    assert len(short) == pytest.approx(1_000 * share, abs=75)


def test_the_first_load_fits_beside_the_start(tokenizer: Tokenizer, tmp_path: Path) -> None:
    pack = write_tiny_pack(tmp_path / "text", tokenizer, load_bytes=36_500)
    start = Folder.open(pack / "start", "weights")
    loads = [Folder.open(path, "load") for path in sorted(pack.glob("load_*"))]
    assert len(loads) > 1
    assert start.size + loads[0].size <= 36_500
    assert all(load.size <= 36_500 for load in loads)
    assert (pack / "tokenizer.json").read_bytes() == tokenizer.to_str().encode()


def test_the_start_is_the_encoder_in_8_bits(tokenizer: Tokenizer, tmp_path: Path) -> None:
    pack = write_tiny_pack(tmp_path / "text", tokenizer)
    model, fields, progress = read_weights(Folder.open(pack / "start", "weights"))
    torch.manual_seed(0)
    given = TiedEncoder(small_config(vocab_size=tokenizer.get_vocab_size()))
    assert fields.encoder == given.config
    assert progress.step == 0
    for name, tensor in given.state_dict().items():
        assert (model.state_dict()[name] - tensor).abs().max() <= tensor.abs().max() / 250, name


def test_rows_are_framed_and_some_lose_their_full_stop(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    # The number of held-out rows and texts is limited, and no text is in two loads.
    text = tmp_path / "text.txt"
    text.write_text(repetitive_text(400).replace("\n\n", ".\n\n"))
    unknown = tokenizer.token_to_id("[UNK]")  # as the verses have no full stop
    plan = tiny_plan()
    config = small_config(vocab_size=tokenizer.get_vocab_size())
    folders = write_pack(
        tmp_path / "pack",
        TiedEncoder(config),
        tokenizer.to_str().encode(),
        plan,
        PackOptions(files=[text], held_out_files=[text], stopless_share=0.5),
        lambda _: None,
    )
    rows, held_out = read_rows(folders[1])
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    for part in (*rows.values(), *held_out.values()):
        assert (part[:, 0] == cls).all()
        assert (part[:, -1] == sep).all()
    assert len(held_out["packed"]) == plan.evaluation_rows
    short = [part for name, part in held_out.items() if name != "packed"]
    assert sum(map(len, short)) == pytest.approx(8 * plan.evaluation_rows, abs=2)
    ends = np.concatenate([part[:, -2] for name, part in rows.items() if name != "packed"])
    assert 0.1 < (ends == unknown).mean() < 0.4


@pytest.mark.parametrize("field", ["short_documents", "stopless_share"])
def test_shares_are_from_0_to_1(field: str) -> None:
    with pytest.raises(ValueError, match=rf"{field} must be from 0 to 1 \(got -0\.1\)"):
        PackOptions(files=[], held_out_files=[], **{field: -0.1})  # type: ignore[arg-type]

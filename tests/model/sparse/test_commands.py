"""The command `fillmask-train sparse`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.modules import read_modules
from fillmask_model.checkpoints.sparse import with_sparse_settings
from fillmask_model.commands import main
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.sparse.pairs import PairFile
from tests.model.classification.samples import write_rows
from tests.model.sparse.samples import encoder_for, pairs_of, word_tokenizer

QUICK = ("--validation=validation.csv", "--init=start", "--output=run", "--device=cpu")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokenizer = word_tokenizer()
    save_checkpoint(Path("start"), encoder_for(tokenizer), tokenizer.to_str().encode())
    write_pairs("pairs.csv", pairs_of(64))
    write_pairs("validation.csv", pairs_of(20, seed=1))


def write_pairs(path: str, pairs: PairFile) -> None:
    sides = (pairs.queries.examples, pairs.documents.examples)
    rows = [{"query": q.text, "document": d.text} for q, d in zip(*sides, strict=True)]
    write_rows(path, rows)


def test_the_checkpoint_is_a_sparse_encoder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sparse", "pairs.csv", *QUICK, "--epochs=2"]) == 0
    output = capsys.readouterr().out
    assert "training pairs: 64, validation pairs: 20" in output
    assert "checkpoint after epoch 2 of 2: run" in output
    lines = [json.loads(line) for line in Path("run/history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert 0 <= lines[1]["validation_mrr_at_10"] <= 1
    modules = read_modules(Path("run"))
    settings = with_sparse_settings(load_checkpoint(Path("run")), Path("run"), modules).sparse
    assert settings is not None
    assert settings.pooling == SparsePooling()
    # a second run replaces its own files
    assert main(["sparse", "pairs.csv", *QUICK, "--epochs=1"]) == 0
    assert len(Path("run/history.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query-column=question"], "pairs.csv has no column 'question'"),
        (["--max-tokens=4"], "--max-tokens must be from 8 to 17, the maximum of the encoder"),
        (["--penalty-share=1"], "penalty_share must be below 1"),
        (["--batch-rows=65"], "at least 65 pairs, one batch (got 64)"),
        (["--output=start"], "start/config.json; choose another output"),
        (["--init=."], "config.json"),
    ],
)
def test_mistakes_get_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sparse", "pairs.csv", *QUICK, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_long_texts_are_cut_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"query": "cat", "document": "katze " * 30}] * 32
    write_rows("pairs.csv", rows)
    assert main(["sparse", "pairs.csv", *QUICK]) == 2
    assert "row 1 must have at most 17 tokens (got 32" in capsys.readouterr().err
    assert main(["sparse", "pairs.csv", *QUICK, "--epochs=1", "--on-long-text=truncate"]) == 0
    assert "rows of pairs.csv truncated to 17 tokens: 32 of 32" in capsys.readouterr().out


def test_other_files_are_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/modules.json").write_text("[]")
    assert main(["sparse", "pairs.csv", *QUICK]) == 2
    assert "run/modules.json exists and does not come from fillmask" in capsys.readouterr().err


def test_a_tokenizer_with_too_many_tokens_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = word_tokenizer()
    tokenizer.add_tokens(["another"])
    Path("start/tokenizer.json").write_text(tokenizer.to_str())
    assert main(["sparse", "pairs.csv", *QUICK]) == 2
    assert "must have at most 35 tokens, one for each" in capsys.readouterr().err

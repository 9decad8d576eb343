"""Fixtures: a local hub with a small checkpoint, and an empty cache."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from tests.export.hub.commands import NAME, OTHER_FILES
from tests.export.hub.local_hub import ONE, LocalHub, Repository, local_hub
from tests.model.checkpoints.families.samples import SAMPLES
from tests.model.tokenizers.tokenizer_directories import KINDS, read, write_directory


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a small BertForMaskedLM with files that the export does not need."""
    directory = tmp_path_factory.mktemp("hub") / "tiny"
    write_directory(directory, KINDS["BERT"], fast=True)
    shutil.rmtree(directory / "slow")
    words = len(json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"])
    bert = SAMPLES["BERT, three heads"]
    sizes = {"vocab_size": words, "max_position_embeddings": 32}
    replace(bert, fields=bert.fields | sizes).make().save_pretrained(directory)
    for name in OTHER_FILES:
        (directory / name).write_text("not needed")
    read(directory, "bert")  # tries the tokenizer, so that no forked process does it again
    return directory


@pytest.fixture
def directory(tiny: Path, tmp_path: Path) -> Path:
    """Copy of the small checkpoint that a test may change."""
    return shutil.copytree(tiny, tmp_path / "remote")


@pytest.fixture
def hub(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """Hub with the small checkpoint, and with an empty cache in this process."""
    with local_hub() as hub:
        hub.repositories[NAME] = Repository({ONE: directory}, {"main": ONE})
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        # huggingface_hub reads the environment only at its import
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield hub
        close_session()

"""Examples and training commands of docs/classification.md, with a small classifier."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask_export import restore
from fillmask_export.commands import main as export_main
from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.commands import main as train_main
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.docs import pages
from tests.docs.code_examples import run_client, serving
from tests.docs.test_examples import HOST, answer
from tests.model.samples import VERSES, random_encoder, small_config
from tests.service.api.labels.bundles import write_label_bundle

pytestmark = pytest.mark.processes

PAGE = pages.DOCS / "classification.md"
TEXT = pages.read(PAGE)
BLOCKS = re.findall(r"```(python|bash)\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a service with a small classifier."""
    bundle = write_label_bundle(tmp_path_factory.mktemp("page") / "labels")
    with serving(f"--bundle={bundle}") as host:
        yield host


@pytest.mark.parametrize(("language", "code"), BLOCKS)
def test_example_gets_a_response(language: str, code: str, host: str) -> None:
    assert HOST in code
    if language == "bash":
        assert set(answer(code, host)[0][0]) == {"label", "score"}
        return
    assert len(run_client(language, code.replace(HOST, host)).splitlines()) == 2


@pytest.mark.slow
def test_training_commands_of_the_page_make_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A small checkpoint replaces the built-in model, which takes too long to train.
    monkeypatch.chdir(tmp_path)
    [rows] = re.findall(r"```csv\n(.*?)```", TEXT, re.DOTALL)
    header, *examples = rows.splitlines()
    # the split keeps equal texts together, so each copy of a row gets a number
    copies = [row.replace(" ", f" {n} ", 1) for n in range(20) for row in examples]
    Path("DATA.csv").write_text("\n".join([header, *copies]) + "\n", encoding="utf-8")
    block = next(code for code in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) if "DATA" in code)
    start, train, export = (shlex.split(line) for line in block.splitlines())
    module, bundle, checkpoint = start[2:]
    assert module == restore.__name__
    assert (pages.ROOT / bundle / "bundle.json").is_file()
    tokenizer = train_word_pieces([*VERSES, *examples], vocab_size=200)
    config = small_config(vocab_size=tokenizer.get_vocab_size(), max_positions=64)
    save_checkpoint(Path(checkpoint), random_encoder(config), tokenizer.to_str().encode())
    assert train_main([*train[1:], "--epochs=1"]) == 0
    for file in re.findall(r"`(\w+\.\w+)`", pages.section(TEXT, "Training on your own data")):
        assert (Path("runs/labels") / file).is_file()
    assert export_main(export[1:]) == 0
    written = read_bundle(Path(export[-3]))
    assert written.classification is not None
    assert written.classification.labels == ("complaint", "request")
    assert (written.tasks, written.precision) == (("text-classification",), "int8")

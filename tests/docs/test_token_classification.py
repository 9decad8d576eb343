"""Examples of docs/token-classification.md, with a tagger that knows a few words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from fillmask_export.heads.classify_tokens import MIN_AGREEMENT
from tests.docs import pages
from tests.docs.code_examples import run_client, serving
from tests.docs.test_examples import HOST, answer
from tests.service.cli.command_line import fillmask
from tests.service.taggers import write_tagger

pytestmark = pytest.mark.processes

TEXT = pages.read(pages.DOCS / "token-classification.md")
REDACT = pages.section(TEXT, "Redact a file")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with a tagger."""
    directory = tmp_path_factory.mktemp("page") / "bundles"
    write_tagger(directory / "tagger")
    return directory


@pytest.fixture(scope="module")
def host(bundles: Path) -> Iterator[str]:
    """Host and port of a service with the tagger."""
    with serving(f"--bundle={bundles}") as host:
        yield host


def test_requests(host: str) -> None:
    section = pages.section(TEXT, "Requests")
    [shell], [code] = (
        re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
        for language in ("bash", "python")
    )
    [shown] = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    *_, found = answer(shell, host)
    assert set(found) == set(re.findall(r'"(\w+)": ', shown))
    assert (found["start"], found["end"]) == (16, 21)
    *_, line = run_client("python", code.replace(HOST, host)).strip().split("\n")
    assert line.split()[1:] == ["LOC", "paris", "16", "21"]


def test_redaction(bundles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As the page says it, in Python and in a shell.
    monkeypatch.chdir(tmp_path)
    Path("bundles").symlink_to(bundles)
    Path("letters.txt").write_text("She is in Paris.\n\nA dog.\n")
    [code] = re.findall(r"```python\n(.*?)```", REDACT, re.DOTALL)
    exec(code, {})  # noqa: S102 - of our own page
    assert Path("redacted.txt").read_text() == "[PER] is in [LOC].\n\nA dog.\n"
    Path("letters.txt").write_text("She is in Paris.\nA dog.\n")
    [command] = re.findall(r"```sh\n(.*?)```", REDACT, re.DOTALL)
    assert fillmask(*shlex.split(command)[1:]).code == 0
    assert [line.split(",")[-3:-1] for line in Path("entities.csv").read_text().splitlines()]


def test_the_gate_of_the_page() -> None:
    assert f"more than {100 * (1 - MIN_AGREEMENT):.0f} % of tokens" in TEXT

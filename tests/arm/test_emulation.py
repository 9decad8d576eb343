from __future__ import annotations

from pathlib import Path

import pytest

from tests.arm import emulation
from tests.arm.__main__ import README_ANSWER, README_REQUEST, main


@pytest.fixture(autouse=True)
def _empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulation, "STORE", tmp_path)


def test_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The message ends with the last line that debootstrap prints.
    # The next run finds no incomplete files.
    failing = tmp_path / "debootstrap"
    failing.write_text("#!/bin/sh\necho 'E: Failed getting release file' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: "/present")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert main() == 0
    said = capsys.readouterr().out
    assert said == "arm-check is skipped: debootstrap fails: E: Failed getting release file.\n"
    assert not (tmp_path / "root").exists()


def test_the_request_and_its_answer_are_readmes() -> None:
    assert README_REQUEST.startswith("curl -s http://127.0.0.1:8000/fill-mask")
    assert [fill["token_str"] for fill in README_ANSWER][:2] == ["capital", "city"]

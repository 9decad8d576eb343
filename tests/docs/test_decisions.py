"""Records of decisions, their index, and the numbers that code and pages cite."""

import re
import subprocess

from tests.docs import pages

FOLDER = pages.DOCS / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
NUMBERS = [record.name.split("-")[0] for record in RECORDS]


def test_each_record_has_a_number_of_its_own() -> None:
    titles = [pages.read(record).splitlines()[0] for record in RECORDS]
    assert [re.findall(r"^# (\d{3}): \S", title) for title in titles] == [[n] for n in NUMBERS]
    assert len(set(NUMBERS)) == len(NUMBERS)


def test_index_has_every_record() -> None:
    index = pages.read(FOLDER / "README.md")
    lines = re.findall(r"^- \[(\d+)\]\((\S+)\) \S", index, re.MULTILINE)
    assert lines == [(n, record.name) for n, record in zip(NUMBERS, RECORDS, strict=True)]


def test_every_cited_record_exists() -> None:
    command = ["git", "grep", "--untracked", "-hoE", "decisions/[0-9]+"]
    found = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=True)
    cited = {name.removeprefix("decisions/") for name in found.stdout.splitlines()}
    assert cited <= set(NUMBERS)

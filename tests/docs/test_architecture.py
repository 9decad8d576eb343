"""Packages and glossary in docs/architecture.md."""

import re

from tests.docs import pages

PAGE = pages.read(pages.DOCS / "architecture.md")
MAX_TERMS = 20


def test_every_package_has_a_line() -> None:
    packages = {
        f"{path.parent.relative_to(pages.ROOT)}/"
        for top in ("service", "model", "export", "benchmarks")
        for path in (pages.ROOT / top).rglob("__init__.py")
    }
    # benchmarks/ contains only packages. The comparison starts the servers as programs.
    packages -= {"benchmarks/", "benchmarks/comparison/servers/"}
    named = re.findall(r"^\| `([\w/]+/)` \|", pages.section(PAGE, "Packages"), re.MULTILINE)
    assert set(named) >= packages


def test_every_module_named_exists() -> None:
    named = set(re.findall(r"`([\w/]+/\w+\.py)`", PAGE))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (pages.ROOT / path).is_file()] == []


def test_glossary_has_at_most_twenty_terms() -> None:
    rows = re.findall(r"^\| [^|]+ \|", pages.section(PAGE, "Glossary"), re.MULTILINE)
    assert 0 < len(rows) - 2 <= MAX_TERMS  # without the header row and its delimiter row

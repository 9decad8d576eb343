"""Packages and glossary in docs/architecture.md."""

import re
from pathlib import Path

from tests.docs import pages

PAGE = pages.read(pages.DOCS / "architecture.md")
SERVICE = pages.ROOT / "service" / "fillmask"
MAX_TERMS = 20


def test_every_package_is_named() -> None:
    # A package has a row of its own, or the row of the package around it names its folder.
    packages = {
        path.parent.relative_to(pages.ROOT)
        for top in ("service", "model", "export", "benchmarks")
        for path in (pages.ROOT / top).rglob("__init__.py")
    }
    packages.remove(Path("benchmarks/comparison/servers"))  # programs that the comparison starts
    section = pages.section(PAGE, "Packages")
    rows = dict(re.findall(r"^\| `([\w/]+)/` \|(.*)\|$", section, re.MULTILINE))
    missing = [
        str(package)
        for package in sorted(packages - set(map(Path, rows)))
        if f"`{package.name}/`" not in rows.get(str(package.parent), "")
    ]
    assert missing == []
    assert [row for row in rows if not (pages.ROOT / row).is_dir()] == []


def test_every_module_named_exists() -> None:
    # Paths without a source root are below service/fillmask.
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (SERVICE / path).is_file()] == []


def test_glossary_has_at_most_twenty_terms() -> None:
    rows = re.findall(r"^\| [^|]+ \|", pages.section(PAGE, "Glossary"), re.MULTILINE)
    assert 0 < len(rows) - 2 <= MAX_TERMS  # without the header row and its delimiter row

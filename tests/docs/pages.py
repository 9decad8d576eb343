"""Documentation pages with their anchors, links and code blocks."""

from __future__ import annotations

import re
from pathlib import Path

from fillmask.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("decisions/*.md")])
VARIABLES = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return _FENCED.sub("", read(page))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    """Return the targets of a page's links and images."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def section(text: str, title: str) -> str:
    """Return the text under a heading, up to the next heading of its level or above."""
    heading = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert heading is not None, title
    level = len(heading[1])
    rest = text[heading.end() :]
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]

"""The table with the texts of the page, which a translation replaces."""

import re
from html.parser import HTMLParser
from pathlib import Path

import fillmask

PLAYGROUND = Path(fillmask.__file__).parent / "playground"
TABLE = PLAYGROUND / "strings.js"
NAMES = {"fillmask", "curl", "Python", "JavaScript"}  # the same in every language


class Page(HTMLParser):
    """Texts of index.html, and the keys of the texts that the table adds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self.keys: set[str] = set()
        self._is_fallback = False
        self.feed((PLAYGROUND / "index.html").read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_fallback |= tag == "noscript"
        given = dict(attrs)
        self.texts |= {given[name] or "" for name in ("aria-label", "placeholder") if name in given}
        self.keys |= {pair.split(":")[1] for pair in (given.get("data-strings") or "").split()}

    def handle_endtag(self, tag: str) -> None:
        self._is_fallback &= tag != "noscript"

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._is_fallback:
            self.texts.add(data.strip())


def test_the_page_has_no_text_of_its_own() -> None:
    assert Page().texts == NAMES


def test_table_has_exactly_the_strings_of_the_page_and_its_scripts() -> None:
    table = set(re.findall(r"^  (\w+):", TABLE.read_text(encoding="utf-8"), re.MULTILINE))
    used = Page().keys
    for script in set(PLAYGROUND.glob("*.js")) - {TABLE}:
        code = script.read_text(encoding="utf-8")
        used |= set(re.findall(r"STRINGS\.(\w+)", code))
        for names in re.findall(r"const \{ ([\w, ]+) \} = STRINGS;", code):
            used |= set(names.split(", "))
    assert table == used

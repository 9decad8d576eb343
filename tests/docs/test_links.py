"""Links, anchors, settings, make targets, modules, files and routes that pages name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.docs import pages
from tests.running_server import SOURCE_ROOTS

FIRST_CELL = re.compile(r"^\| (`(?:GET|POST) /[^|]*) \|", re.MULTILINE)
ROUTE = re.compile(r"`((?:GET|POST) /\S*)`")
FOLDERS = "service|model|export|tests|benchmarks|k8s|docs|constraints"
FILE = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)`")

NAMES = {str(page.relative_to(pages.ROOT)): page for page in pages.PAGES}
OTHERS = [
    page
    for folder in (".github", "benchmarks", "export", "model", "native", "service")
    for page in sorted((pages.ROOT / folder).rglob("*.md"))
]
every_file = pytest.mark.parametrize(
    "page", [*pages.PAGES, *OTHERS], ids=lambda page: str(page.relative_to(pages.ROOT))
)
# the changelog names files and settings that no longer exist
CURRENT = {name: page for name, page in NAMES.items() if name != "CHANGELOG.md"}
every_current_page = pytest.mark.parametrize("page", list(CURRENT.values()), ids=list(CURRENT))


@every_file
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in pages.links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in pages.anchors(target), link


@every_current_page
def test_settings_exist(page: Path) -> None:
    named = set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", pages.read(page)))
    assert named <= pages.VARIABLES


@every_current_page
def test_make_targets_exist(page: Path) -> None:
    makefile = pages.read(pages.ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    commands = re.findall(r"(?:^|`|=\S+ )make ([a-z][a-z-]*)", pages.read(page), re.MULTILINE)
    assert set(commands) <= targets


@every_current_page
def test_modules_exist(page: Path) -> None:
    for module in re.findall(r"python -m ((?:fillmask|tests|benchmarks)[\w.]*)", pages.read(page)):
        paths = [root.joinpath(*module.split(".")) for root in (pages.ROOT, *SOURCE_ROOTS)]
        names = [file for path in paths for file in (path.with_suffix(".py"), path / "__main__.py")]
        assert any(name.exists() for name in names), module


@every_current_page
def test_files_exist(page: Path) -> None:
    for path in FILE.findall(pages.prose(page)):
        assert (pages.ROOT / path).exists(), path


def test_every_route_is_documented() -> None:
    with TestClient(create_app(Settings())) as client:
        document = client.get("/openapi.json").json()
    routes = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method in methods
    }
    named = {
        route
        for page in ("requests.md", "protocols.md")
        for cell in FIRST_CELL.findall(pages.read(pages.DOCS / page))
        for route in ROUTE.findall(cell)
    }
    assert named == routes | {"GET /docs"}

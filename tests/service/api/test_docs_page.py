"""Page at /docs, which loads no files from other hosts."""

import base64
import hashlib
import re

from fastapi.testclient import TestClient


def test_every_address_in_the_page_is_ours_and_there(client: TestClient) -> None:
    # Scripts, styles, icon and the OpenAPI document come from this server, by relative paths.
    page = client.get("/docs").text
    addresses = re.findall(r"""(?:src|href)="([^"]+)"|url: '([^']+)'""", page)
    found = [first or second for first, second in addresses]
    assert len(found) == 4
    for address in found:
        assert not re.match(r"\w+:|//|/", address), address
        answered = client.get(f"/{address.removeprefix('./')}")
        assert answered.status_code == 200
        assert len(answered.content) > 500


def test_there_is_no_second_page(client: TestClient) -> None:
    # FastAPI's second page, ReDoc, would load files from another host.
    assert client.get("/redoc").status_code == 404


def test_only_its_own_script_may_run(client: TestClient) -> None:
    answer = client.get("/docs")
    policy = answer.headers["content-security-policy"]
    [script] = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy

"""The page at /docs is whole without any other host."""

import re

from fastapi.testclient import TestClient


def test_every_address_in_the_page_is_ours_and_there(client: TestClient) -> None:
    """Scripts, styles, icon and the OpenAPI document come from this server, by relative paths."""
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
    """ReDoc, which FastAPI would load from elsewhere, is off."""
    assert client.get("/redoc").status_code == 404

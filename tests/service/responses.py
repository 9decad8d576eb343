"""Common checks of responses."""

import re
from typing import Any

from fastapi.testclient import TestClient


def post(client: TestClient, path: str, **body: object) -> Any:
    """Return the JSON of the response to a request, which must succeed."""
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def check_refusal(answer: Any, status: int, message: str) -> None:
    """Check the status and the message of an error response and the absence of forbidden text."""
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"error": message}
    assert message.endswith(".")
    assert not re.search(r"[.!?]\s", message), "more than one sentence"
    assert "\n" not in message
    assert "Traceback" not in message
    allowed = (
        "fill-mask|score|classify|rerank|embed_sparse|docs|health|live|ready|json"
        "|x-www-form-urlencoded"
    )
    assert not re.search(rf"\.py\b|/(?!{allowed})\w", message), "a path of the machine"

"""Requests with an invalid path, method, content type or size."""

import pytest
from fastapi.testclient import TestClient

from tests.service.refusal import check_refusal

# name -> (method, path, headers, content, status, message)
REQUESTS: dict[str, tuple[str, str, dict[str, str], bytes, int, str]] = {
    "form": (
        "POST",
        "/fill-mask",
        {"content-type": "application/x-www-form-urlencoded"},
        b"inputs=x",
        415,
        'The content type must be application/json (got "application/x-www-form-urlencoded").',
    ),
    "no content type": (
        "POST",
        "/fill-mask",
        {},
        b'{"inputs": "[MASK]"}',
        415,
        'The content type must be application/json (got "").',
    ),
    "announced too large": (
        "POST",
        "/fill-mask",
        {"content-type": "application/json", "content-length": "160000"},
        b"x" * 160_000,
        413,
        (
            "The body must have at most 150000 bytes (got 160000); send fewer or shorter texts, or "
            "raise FILLMASK_MAX_BODY_BYTES."
        ),
    ),
    "unknown path": (
        "GET",
        "/nothing",
        {},
        b"",
        404,
        "Unknown path; use an endpoint that GET /docs lists, such as POST /fill-mask.",
    ),
    "path of another server's health check": (
        "GET",
        "/healthz",
        {},
        b"",
        404,
        "Unknown path; use GET /health/live or GET /health/ready.",
    ),
    "path of text-embeddings-inference": (
        "POST",
        "/embed",
        {},
        b"{}",
        404,
        (
            "Unknown path; this service makes no dense embeddings; its models have "
            "POST /fill-mask, POST /score."
        ),
    ),
    "path of OpenAI": (
        "POST",
        "/v1/completions",
        {},
        b"{}",
        404,
        (
            "Unknown path; this service generates no text; its models have POST /fill-mask, "
            "POST /score."
        ),
    ),
    "directory of the health checks": (
        "GET",
        "/health/",
        {},
        b"",
        404,
        "Unknown path; use GET /health/live or GET /health/ready.",
    ),
    "slash at the end": (
        "POST",
        "/fill-mask/",
        {},
        b"{}",
        404,
        "Unknown path; use an endpoint that GET /docs lists, such as POST /fill-mask.",
    ),
    "GET": (
        "GET",
        "/fill-mask",
        {},
        b"",
        405,
        "The method GET is not allowed for this path; use POST.",
    ),
    "DELETE": (
        "DELETE",
        "/info",
        {},
        b"",
        405,
        "The method DELETE is not allowed for this path; use GET, HEAD.",
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_request(case: str, client: TestClient) -> None:
    method, path, headers, content, status, message = REQUESTS[case]
    answer = client.request(method, path, headers=headers, content=content)
    check_refusal(answer, status, message)
    assert (status == 405) == ("allow" in answer.headers)

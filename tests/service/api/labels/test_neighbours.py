"""Independence of labels from the other requests in a batch."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.model.samples import VERSES

WORDS = " ".join(VERSES).split()
TEXTS = [" ".join(WORDS[3 * i : 3 * i + 1 + i % 9]) for i in range(8)]
PAIRS = [{"text": text, "text_pair": f"the {text}"} for text in TEXTS]
REQUESTS: list[tuple[str, Any]] = [
    *(("/classify", text) for text in TEXTS),
    *(("/classify", pair) for pair in PAIRS),
    *(("/fill-mask", f"{text} [MASK]") for text in TEXTS),
    *(("/score", pair) for pair in PAIRS),
]


async def test_labels_are_the_same_alone_and_among_32_requests(both: Path) -> None:
    # The other requests fill, score and classify texts and pairs of other lengths.
    app = create_app(Settings(bundle=both, threads=2))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client,
    ):

        async def ask(path: str, inputs: object) -> Any:
            answer = await client.post(path, json={"inputs": inputs})
            assert answer.status_code == 200, answer.text
            return answer.json()

        alone = [await ask(path, inputs) for path, inputs in REQUESTS]
        for _ in range(3):
            together = await asyncio.gather(*(ask(*request) for request in REQUESTS))
            for (path, _), one, other in zip(REQUESTS, alone, together, strict=True):
                if path == "/classify":
                    assert [label["label"] for label in one[0]] == [
                        label["label"] for label in other[0]
                    ]
                    assert [label["score"] for label in one[0]] == pytest.approx(
                        [label["score"] for label in other[0]], abs=1e-6
                    )
    assert len(REQUESTS) == 32

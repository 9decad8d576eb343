"""Cohere's client with a service process."""

import cohere
import httpx
import pytest

pytestmark = pytest.mark.processes
DOCUMENTS = ["the cat sat", "the dog lay by the door", "a ship"]
QUERY = "where is the cat"


# the client uses it, on Python 3.14
@pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction':DeprecationWarning")
def test_both_versions_of_the_client_rerank(
    labels_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # the client does not close its own connections
    with httpx.Client() as http:
        body = {"query": QUERY, "texts": DOCUMENTS}
        ranks = [
            (one["index"], one["score"])
            for one in http.post(f"{labels_url}/models/ranker/rerank", json=body).json()
        ]
        newer = cohere.ClientV2(api_key="none", base_url=labels_url, httpx_client=http)
        best = newer.rerank(model="ranker", query=QUERY, documents=DOCUMENTS, top_n=2)
        assert [(one.index, one.relevance_score) for one in best.results] == ranks[:2]
        assert best.id
        older = cohere.Client(api_key="none", base_url=labels_url, httpx_client=http)
        found = older.rerank(
            model="ranker", query=QUERY, documents=DOCUMENTS, return_documents=True
        )
        assert [(one.index, one.relevance_score) for one in found.results] == ranks
        texts = [one.document.text for one in found.results if one.document]
        assert texts == [DOCUMENTS[index] for index, _ in ranks]
        with pytest.raises(cohere.NotFoundError):
            newer.rerank(model="rerank-v9", query=QUERY, documents=DOCUMENTS)

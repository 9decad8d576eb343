"""Calls of other projects' clients for test_search_clients.py.

The command `python -I search_client_calls.py` runs in the environment of the clients. It reads the
calls from standard input and prints what the clients found, all as JSON.
"""
# ruff: noqa: E402 - the hook sees the imports, too

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _refuse_other_hosts(event: str, arguments: tuple[Any, ...]) -> None:
    # litellm asks huggingface.co for the size of each model, and others may report their use
    if event == "socket.getaddrinfo" and arguments[0] != "127.0.0.1":
        raise ConnectionError(arguments[0])


sys.addaudithook(_refuse_other_hosts)

import litellm
from haystack import Document
from haystack.utils import Secret
from haystack_integrations.components.embedders.huggingface_api import (
    HuggingFaceTEISparseDocumentEmbedder,
)
from haystack_integrations.components.rankers.cohere import CohereRanker
from haystack_integrations.components.rankers.huggingface_api import (
    HuggingFaceTEIRanker,
    TruncationDirection,
)
from haystack_integrations.components.rankers.jina import JinaRanker
from langchain_cohere import CohereRerank
from langchain_core import documents as langchain
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor import cohere_rerank, jinaai_rerank, tei_rerank

KEY = "none"  # some clients want one
SECRET = Secret.from_token(KEY)


@dataclass(frozen=True)
class Search:
    """What every client gets."""

    url: str
    model: str
    query: str
    texts: list[str]


def langchain_cohere(to: Search, **own: Any) -> Any:
    compressor = CohereRerank(base_url=to.url, model=to.model, cohere_api_key=KEY, **own)
    documents = [langchain.Document(text, metadata={"index": n}) for n, text in enumerate(to.texts)]
    found = [one.metadata for one in compressor.compress_documents(documents, to.query)]
    return [(one["index"], one["relevance_score"]) for one in found]


def _llama_index(ranker: Any, to: Search) -> Any:
    nodes = [NodeWithScore(node=TextNode(text=text, id_=str(n))) for n, text in enumerate(to.texts)]
    found = ranker.postprocess_nodes(nodes, query_str=to.query)
    return [(int(one.node_id), one.score) for one in found]


def llama_index_tei(to: Search, **own: Any) -> Any:
    return _llama_index(tei_rerank.TextEmbeddingInference(base_url=to.url, **own), to)


def llama_index_cohere(to: Search, **own: Any) -> Any:
    ranker = cohere_rerank.CohereRerank(base_url=to.url, api_key=KEY, model=to.model, **own)
    return _llama_index(ranker, to)


def llama_index_jina(to: Search, **own: Any) -> Any:
    url = f"{to.url}/v1"
    return _llama_index(
        jinaai_rerank.JinaRerank(base_url=url, api_key=KEY, model=to.model, **own), to
    )


def _haystack(ranker: Any, to: Search, **own: Any) -> Any:
    documents = [Document(content=text, meta={"index": n}) for n, text in enumerate(to.texts)]
    found = ranker.run(query=to.query, documents=documents, **own)["documents"]
    return [(one.meta["index"], one.score) for one in found]


def haystack_tei(to: Search, **own: Any) -> Any:
    if "truncation_direction" in own:
        own["truncation_direction"] = TruncationDirection(own["truncation_direction"])
    return _haystack(HuggingFaceTEIRanker(url=to.url), to, **own)


def haystack_cohere(to: Search, **own: Any) -> Any:
    ranker = CohereRanker(api_base_url=to.url, api_key=SECRET, model=to.model)
    return _haystack(ranker, to, **own)


def haystack_jina(to: Search, **own: Any) -> Any:
    url = f"{to.url}/v1/rerank"
    return _haystack(JinaRanker(base_url=url, api_key=SECRET, model=to.model), to, **own)


def haystack_sparse(to: Search, **own: Any) -> Any:
    embedder = HuggingFaceTEISparseDocumentEmbedder(api_base_url=to.url, **own)
    found = embedder.run([Document(content=text) for text in to.texts])["documents"]
    return [one.sparse_embedding.to_dict() for one in found]


def litellm_rerank(to: Search, *, provider: str, **own: Any) -> Any:
    model = f"{provider}/{to.model}"
    found = litellm.rerank(model, to.query, to.texts, api_base=to.url, api_key=KEY, **own)
    return [
        (one["index"], one["relevance_score"], *one.get("document", {}).values())
        for one in found.results
    ]


CLIENTS: dict[str, Callable[..., Any]] = {
    "langchain_cohere": langchain_cohere,
    "llama_index_tei": llama_index_tei,
    "llama_index_cohere": llama_index_cohere,
    "llama_index_jina": llama_index_jina,
    "haystack_tei": haystack_tei,
    "haystack_cohere": haystack_cohere,
    "haystack_jina": haystack_jina,
    "haystack_sparse": haystack_sparse,
    "litellm": litellm_rerank,
}


def call(client: str, own: dict[str, Any], **search: Any) -> Any:
    """Return what a client found, or its error."""
    try:
        return CLIENTS[client](Search(**search), **own)
    except Exception as error:  # noqa: BLE001 - each client has errors of its own
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    print(json.dumps([call(**one) for one in json.load(sys.stdin)]))  # noqa: T201 - the test reads it

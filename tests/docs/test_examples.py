"""Code on the pages, run unchanged with the built-in model or with a small random one."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from fillmask import FillMask
from tests.docs import pages
from tests.docs.code_examples import (
    END,
    KSERVE,
    python_script,
    run_client,
    run_python,
    serving,
)
from tests.docs.shell_examples import (
    TOLERANCE,
    check_shell_examples,
    checkout_command,
    numbers,
    words,
)
from tests.service.api.labels.bundles import write_label_bundle
from tests.service.sparse_bundles import write_sparse_bundle

pytestmark = pytest.mark.processes

README = pages.read(pages.ROOT / "README.md")
PAGES = {  # with the languages of their examples
    "filling": {"python", "bash"},
    "protocols": {"python", "javascript", "bash"},
    "requests": {"python", "javascript", "bash"},
    "scoring": {"python", "bash"},
}
TEXTS = {name: pages.read(pages.DOCS / f"{name}.md") for name in PAGES}
HOST = "127.0.0.1:8000"
BLOCK = re.compile(r"```(python|javascript|bash)\n(.*?)```", re.DOTALL)
CURL = re.compile(r"curl -s (\S+).*?-d '(\{.*?\})'", re.DOTALL)
RESPONSE = re.compile(r"```(?:bash|sh)\n([^`]*)```\n\n```json\n([^`]*)```")


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """Host and port of a running service."""
    with serving() as host:
        yield host


def answer(code: str, host: str) -> Any:
    """Send the request of a shell block and return the response."""
    [(url, body)] = CURL.findall(code.replace(HOST, host))
    return httpx.post(url, json=json.loads(body)).raise_for_status().json()


@pytest.mark.parametrize(
    ("language", "code"),
    [
        pytest.param(
            language,
            code,
            id=f"{page} {number}, {language}",
            marks=[pytest.mark.slow] * (KSERVE in code),  # whose client has an own environment
        )
        for page, text in TEXTS.items()
        for number, (language, code) in enumerate(BLOCK.findall(text))
    ],
)
def test_example_gets_a_response(language: str, code: str, host: str) -> None:
    assert HOST in code
    code = code.replace(HOST, host)
    assert answer(code, host) if language == "bash" else run_client(language, code).strip()


def test_pages_have_examples_in_their_languages() -> None:
    assert {page: {one[0] for one in BLOCK.findall(text)} for page, text in TEXTS.items()} == PAGES


@pytest.mark.parametrize("page", [README, TEXTS["scoring"]], ids=["README", "scoring"])
def test_responses_are_those_shown(page: str, host: str) -> None:
    [(code, shown)] = RESPONSE.findall(page)
    printed, expected = json.dumps(answer(code, host)), json.dumps(json.loads(shown))
    assert numbers(printed) == pytest.approx(numbers(expected), abs=TOLERANCE)
    assert words(printed) == words(expected)


def test_python_of_the_readme_prints_fills(host: str) -> None:
    library, client = (block.split("```")[0] for block in README.split("```python")[1:])
    assert run_python(library) == "Paris is the capital of France.\n"
    assert re.fullmatch(r"(0\.\d{3} \S+\n){5}", run_python(client.replace(HOST, host)))


def test_python_page_prints_what_is_shown() -> None:
    code, shown = python_script(pages.read(pages.DOCS / "python.md"))
    printed = run_python(code).removesuffix(END).split(END)
    assert len(printed) == len(shown) >= 4
    for found, expected in zip(printed, shown, strict=True):
        assert numbers(found) == pytest.approx(numbers(expected), abs=TOLERANCE)
        assert words(found) == words(expected)


def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    text = README + pages.read(pages.DOCS / "whole-files.md")
    variables = checkout_command(tmp_path)
    (tmp_path / "work").mkdir()
    assert check_shell_examples(text, tmp_path / "work", variables) >= 6


def test_texts_are_classified(tmp_path: Path) -> None:
    [(_, request), (_, client)] = BLOCK.findall(pages.read(pages.DOCS / "classification.md"))
    with serving(f"--bundle={write_label_bundle(tmp_path / 'labels')}") as host:
        assert set(answer(request, host)[0][0]) == {"label", "score"}
        assert len(run_python(client.replace(HOST, host)).splitlines()) == 2


def test_reranking_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    page = pages.read(pages.DOCS / "rerank.md")
    bundle = tmp_path / "ms-marco-MiniLM-L6-v2"
    write_label_bundle(bundle, fills=False, labels=["relevant"], scale=5)
    [(_, request), (_, client)] = BLOCK.findall(page)
    with serving(f"--bundle={bundle}") as host:
        assert sorted(one["index"] for one in answer(request, host)) == [0, 1]
        index, relevance = run_python(client.replace(HOST, host)).split()
    assert int(index) in {0, 1}
    assert 0 < float(relevance) < 1


def test_sparse_vectors_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    page = pages.read(pages.DOCS / "sparse.md")
    bundle = write_sparse_bundle(tmp_path / "bundles" / "Splade_PP_en_v1")
    with serving(f"--bundle={bundle}") as host:
        [vector] = answer(page, host)
    assert len(vector) == 10
    monkeypatch.chdir(tmp_path)
    printed = run_python(python_script(page)[0]).splitlines()
    query, literal, found = (line for line in printed if not line.startswith("--"))
    assert len(ast.literal_eval(query)) == literal.count(":") == 10
    assert sorted(ast.literal_eval(found)) == [0, 1]


class Anything:
    """Ray or Spark, whose clusters the recipes ask for anything."""

    def __getattr__(self, _: str) -> Anything:
        return self

    def __call__(self, *_: object, **__: object) -> Anything:
        return self

    def __getitem__(self, _: str) -> int:
        return 1


class Frame(dict[str, Any]):
    """Columns by name, as pandas has them."""

    def __getitem__(self, key: Any) -> Any:
        return [self[name] for name in key] if isinstance(key, list) else super().__getitem__(key)


def test_recipes_of_ray_and_spark_fill_their_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    session = SimpleNamespace(SparkSession=Anything())
    for name, module in (("ray", Anything()), ("pyspark", session), ("pyspark.sql", session)):
        monkeypatch.setitem(sys.modules, name, module)
    texts = ["Paris is the [MASK] of France.", "The [MASK] barked."]
    with FillMask(threads=1) as model:
        best = [fills[0] for fills in model.fill(texts, top_k=1)]
    expected = ([1, 2], [fill.token_str for fill in best], [fill.score for fill in best])
    recipes: list[dict[str, Any]] = [{}, {}]
    blocks = BLOCK.findall(pages.read(pages.DOCS / "scale-out.md"))
    for (_, code), names in zip(blocks, recipes, strict=True):
        exec(compile(code, "<page>", "exec"), names)  # noqa: S102 - our own page
    column = SimpleNamespace(tolist=lambda: texts)
    assert tuple(recipes[0]["Fill"]()({"id": [1, 2], "inputs": column}).values()) == expected
    [filled] = recipes[1]["fill"](iter([Frame(id=[1, 2], inputs=texts)]))
    assert tuple(filled) == expected

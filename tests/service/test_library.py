"""The face in Python: its answers are those of HTTP, from any thread, loop or process."""

import asyncio
import gc
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pytest

import fillmask
from fillmask import Fill, FillMask, InvalidRequestError, RejectedTarget, RejectedText, TextPair
from fillmask.parameters.texts import PAIR
from fillmask.tasks.task import FILL_MASK
from tests.service.classifiers import write_classifier
from tests.service.cli.command_line import random_texts
from tests.service.server_process import run_process
from tests.service.serving import serving
from tests.service.tiny import MASK_ID, MAX_TOKENS, SPECIAL, VOCABULARY, Tiny, build_tokenizer

TEXT = "paris is the [MASK] of france ."
TWO = "the [MASK] drank a cup of [MASK] ."
LONG = " ".join(["a dog", *["the cat"] * 20, "drank [MASK]"])
# calls whose answers are compared with those of HTTP: method, inputs, parameters
CALLS: list[tuple[str, Any, dict[str, Any]]] = [
    ("fill", TEXT, {}),
    ("fill", TWO, {"top_k": 2}),
    ("fill", [TEXT, TWO], {"top_k": 3}),
    ("fill", TEXT, {"targets": ["capital", "cup of tea"]}),
    ("fill", [TEXT, TWO], {"granularity": "word", "max_word_tokens": 2}),
    ("fill", [TEXT, TWO], {"strategy": "joint", "order": "left_to_right"}),
    ("fill", LONG, {"on_long_text": "window", "top_k": 1}),
    ("score", "paris is the capital .", {}),
    ("score", ["paris is the capital .", "rome is the capital ."], {"variant": "original"}),
    ("score", ["the dog ran", "the dog barked"], {"prefix": "the dog"}),
    ("classify", "the dog barked .", {}),
    ("classify", ["the dog barked .", "rome was a city ."], {"top_k": 2}),
    ("classify", {"text": "is it ?", "text_pair": "it is ."}, {"function_to_apply": "none"}),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle of a model that classifies texts."""
    return write_classifier(tmp_path_factory.mktemp("classifier") / "topics")


@pytest.fixture(scope="module")
def model(tiny: Tiny) -> Iterator[FillMask]:
    """Tiny model."""
    with FillMask(tiny.path, threads=2) as opened:
        yield opened


def to_json(result: Any) -> Any:
    """Return a result as the JSON of HTTP."""
    return [to_json(one) for one in result] if isinstance(result, list) else result.to_dict()


def assert_near(found: Any, expected: Any) -> None:
    """Compare JSON, numbers to 1e-6."""
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_near(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_near(found[name], value)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-6)
    else:
        assert found == expected


def test_answers_are_those_of_http(model: FillMask, tiny: Tiny, bundle: Path) -> None:
    with (
        FillMask(bundle) as labels,
        serving(tiny.path) as fills_over_http,
        serving(bundle) as labels_over_http,
    ):
        for method, inputs, parameters in CALLS:
            path = {"fill": "/fill-mask"}.get(method, f"/{method}")
            client = labels_over_http if method == "classify" else fills_over_http
            response = client.post(path, json={"inputs": inputs, "parameters": parameters})
            assert response.status_code == 200, response.text
            expected = response.json()
            if method == "classify" and not isinstance(inputs, list):
                [expected] = expected  # over HTTP one text has a list around its labels
            opened = labels if method == "classify" else model
            found = getattr(opened, method)(inputs, **parameters)
            assert_near(to_json(found), expected)
            json.dumps(to_json(found))  # plain values
            again = asyncio.run(getattr(opened, f"a{method}")(inputs, **parameters))
            assert again == found


def test_a_fill_matches_the_oracle(model: FillMask, tiny: Tiny) -> None:
    # The oracle is NumPy in float64. The whole vocabulary may be ranked.
    encoding = build_tokenizer()
    encoding.no_truncation()
    encoding.no_padding()
    ids = encoding.encode(TEXT).ids
    fills = model.fill(TEXT, top_k=len(VOCABULARY) - len(SPECIAL))
    best = tiny.best(ids, ids.index(MASK_ID), len(VOCABULARY))
    assert len(fills) == len(best)
    found = {fill.token: np.log(fill.score) for fill in fills}
    assert found == pytest.approx(dict(best), abs=1e-4)


def test_results_are_frozen_and_turn_into_dicts(model: FillMask) -> None:
    [fill] = model.fill(TEXT, top_k=1)
    assert isinstance(fill, Fill)
    assert list(fill.to_dict()) == ["score", "token", "token_str", "sequence"]
    with pytest.raises(AttributeError):
        setattr(fill, "score", 1.0)  # noqa: B010 - mypy refuses the assignment too


def test_inputs_of_other_types(model: FillMask) -> None:
    expected, int_like = model.fill([TEXT, TWO]), cast("Any", np.int64(5))
    assert model.fill((TEXT, TWO)) == expected
    assert model.fill(text for text in (TEXT, TWO)) == expected
    assert model.fill(np.array([TEXT, TWO], dtype=object)) == expected
    assert model.fill(np.array([TEXT, TWO])) == expected
    assert model.fill({"text": TEXT}) == expected[0]
    assert model.fill(TEXT, top_k=int_like) == expected[0]
    targets: Any = {"capital": 1, "city": 2}.keys()
    assert model.fill(TEXT, targets=targets) == model.fill(TEXT, targets=["capital", "city"])
    assert model.fill([MappingProxyType({"text": TEXT})]) == expected[:1]

    class Subclass(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise SystemExit

        def __len__(self) -> int:
            raise SystemExit

    class Wrong(list[str]):
        def __len__(self) -> int:
            return 10**18

    assert model.fill(Wrong([Subclass(TEXT), Subclass(TWO)])) == expected


def test_no_texts_have_no_results(model: FillMask, bundle: Path) -> None:
    with FillMask(bundle, threads=1) as labels:
        methods: tuple[Any, ...] = (model.fill, model.score, labels.classify)
        for method in methods:
            empties: tuple[Any, ...] = ([], (), iter([]), np.array([]))
            for empty in empties:
                assert method(empty) == method(empty, parameters=[], on_error="report") == []
            with pytest.raises(InvalidRequestError, match="Unknown field"):
                method([], topk=3)
    assert model.marginals([], ["cat"]) == []


def test_each_text_may_have_its_own_parameters(model: FillMask) -> None:
    own = [{"top_k": 1}, None, {"top_k": None, "targets": ["cat"]}]
    one, two, three = model.fill([TEXT] * 3, top_k=2, parameters=own)
    assert one == model.fill(TEXT, top_k=1)
    assert two == model.fill(TEXT, top_k=2)
    assert three == model.fill(TEXT, top_k=2, targets=["cat"])
    with pytest.raises(InvalidRequestError, match=r"^parameters\[1\].top_k must be a whole number"):
        model.fill([TEXT] * 2, parameters=[{}, {"top_k": 0}])


def test_errors_name_the_text_or_take_its_place(model: FillMask) -> None:
    texts = [TEXT] * 50 + ["no mask"]
    sentence = "inputs[50] has no mask; write [MASK] in place of a word."
    with pytest.raises(InvalidRequestError) as caught:
        model.fill(texts)
    assert str(caught.value) == sentence
    *fills, rejected = model.fill(texts, on_error="report")
    assert fills == [model.fill(TEXT)] * 50
    assert rejected == RejectedText(sentence)
    with pytest.raises(InvalidRequestError, match=r"^inputs has no mask"):
        model.fill("no mask", on_error="report")
    missing: list[Any] = [None, float("nan"), np.float32(3), "\ud800 [MASK]", {"text": None}]
    reasons = (
        f" must be a text or {PAIR} (got null).",
        f" must be a text or {PAIR} (got NaN).",
        f" must be a text or {PAIR} (got a value of type float32).",
        " has an unpaired surrogate at character 0; remove it or complete the pair.",
        ".text must be a non-blank text (got null).",
    )
    for method, valid in ((model.fill, TEXT), (model.score, "the dog")):
        *found, last = method([*missing, valid], on_error="report")
        assert last == method([valid])[0]
        assert found == [
            RejectedText(f"inputs[{place}]{reason}") for place, reason in enumerate(reasons)
        ]
    best, other = model.fill([TEXT], targets=["cat", "Cat"], on_error="report")[0]
    assert (best.token_str, type(other)) == ("cat", RejectedTarget)


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ([TEXT, b"x"], f"inputs[1] must be a text or {PAIR} (got a value of type bytes)."),
        (
            "\ud800 [MASK]",
            "inputs has an unpaired surrogate at character 0; remove it or complete the pair.",
        ),
        (
            np.array(3),
            f"inputs must be a text, {PAIR} or a list of these (got a value of type ndarray).",
        ),
        # pandas would iterate over the names of a table's columns
        (
            np.array([[TEXT]]),
            f"inputs must be a text, {PAIR} or a list of these (got a value of type ndarray).",
        ),
        ([{1: TEXT}], 'Unknown field "1" in inputs[0]; allowed: text, text_pair.'),
        (
            [{"\ud800": TEXT}],
            'Unknown field "\\ud800" in inputs[0]; allowed: text, text_pair.',
        ),
        (
            TextPair("the [MASK]", cast("Any", iter("a"))),
            "inputs.text_pair must be a non-blank text (got a value of type str_ascii_iterator).",
        ),
    ],
)
def test_invalid_inputs(model: FillMask, inputs: Any, sentence: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        model.fill(inputs)
    assert str(caught.value) == sentence


def test_options_without_an_encoding(model: FillMask) -> None:
    sentence = "has an unpaired surrogate at character 0; remove it or complete the pair."
    for call in (
        lambda: model.fill(TEXT, targets=["cat", "\ud800"]),
        lambda: model.fill([TEXT], parameters=[{"targets": ["\ud800"]}]),
        lambda: model.score("the dog", prefix="\ud800"),
    ):
        with pytest.raises(InvalidRequestError, match=sentence):
            call()


@pytest.mark.parametrize("threads", [0, 1025, 1.5, "2", True])
def test_invalid_threads(threads: Any) -> None:
    with pytest.raises(ValueError, match=r"^threads must be a whole number from 1 to 1024"):
        FillMask(threads=threads)


def test_a_bundle_that_does_not_exist(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="is not a directory; set bundle to the directory"):
        FillMask(tmp_path / "nothing")
    assert threading.active_count() == before


def test_the_environment_changes_nothing(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FILLMASK_THREADS", "none")
    monkeypatch.setenv("FILLMASK_MAX_MASKS", "1")
    with FillMask(tiny.path, threads=1) as opened:
        assert len(opened.fill([TEXT] * 300, top_k=1)) == 300


async def test_threads_and_loops_get_their_own_answers(model: FillMask) -> None:
    texts = random_texts(100)
    expected = await asyncio.to_thread(model.fill, texts)
    assert await asyncio.gather(*map(model.afill, texts)) == expected
    calls = (asyncio.to_thread(model.fill, text) for text in texts)
    assert await asyncio.gather(*calls) == expected


async def test_a_cancelled_call_leaves_the_queue(model: FillMask) -> None:
    call = asyncio.create_task(model.afill(random_texts(5_000)))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    # the queue is first in, first out, so only the passes that run already come before this one
    assert model.fill(TEXT)
    for _ in range(20):  # the end of their batch is counted a moment after its last answer
        if model._model.batcher.accepted_tokens:
            await asyncio.sleep(0.005)
    assert model._model.batcher.accepted_tokens == 0


def test_close_waits_for_running_calls(tiny: Tiny) -> None:
    opened = FillMask(tiny.path, threads=1)
    texts = random_texts(300)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(opened.fill, texts) for _ in range(4)]
        while not opened._model.batcher.accepted_tokens:
            threading.Event().wait(0.001)
        opened.close()
        assert all(len(call.result()) == len(texts) for call in calls if not call.exception())
        refused = [call.exception() for call in calls if call.exception()]
    assert {str(error) for error in refused} <= {"The model is closed; open it again."}
    assert len(refused) < 4


def test_close_frees_the_threads_and_refuses_calls(tiny: Tiny) -> None:
    before = threading.active_count()
    opened = FillMask(tiny.path, threads=2)
    assert threading.active_count() > before
    opened.close()
    opened.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match=r"^The model is closed; open it again.$"):
        opened.fill(TEXT)


def test_a_forgotten_model_is_closed(tiny: Tiny) -> None:
    before = threading.active_count()
    opened = FillMask(tiny.path, threads=2)
    opened.fill(TEXT)
    del opened
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "fillmask-close":
            thread.join(60)
    assert threading.active_count() == before


@pytest.mark.processes
@pytest.mark.parametrize("keep", ["global opened", "pass"])
def test_a_process_ends_with_an_open_model_or_while_it_closes(keep: str, tiny: Tiny) -> None:
    # A local model closes on another thread when the function returns, and the program ends.
    program = f"""
from fillmask import FillMask
def main():
    {keep}
    opened = FillMask({str(tiny.path)!r}, threads=1)
    return opened.fill("a [MASK]")
main()
"""
    done = run_process(program)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_last_reference_may_be_on_the_thread_of_the_loop(tiny: Tiny) -> None:
    before = threading.active_count()
    opened = FillMask(tiny.path, threads=1)
    call = opened._loop._submit(opened._calls.run(FILL_MASK, random_texts(100), {}))
    del opened
    assert len(call.result(60)) == 100
    for _ in range(600):
        if threading.active_count() == before:
            return
        threading.Event().wait(0.1)
    pytest.fail("the model is still open")


@pytest.mark.processes
def test_a_pickled_model_opens_again(model: FillMask, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(pickle.dumps(model)) < 1000
    monkeypatch.chdir("/")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(model.fill, TEXT).result(60) == model.fill(TEXT)


@pytest.mark.processes
def test_a_forked_process_is_refused_and_may_open_its_own(model: FillMask) -> None:
    code = """
import os, sys
from fillmask import FillMask
model = FillMask(sys.argv[1], threads=1)
if os.fork() == 0:
    try:
        model.fill("the [MASK]")
    except RuntimeError as error:
        print(error, flush=True)
    model.close()
    os._exit(0)
os.wait()
print(len(model.fill("the [MASK]")))
"""
    done = run_process(code, str(model._model.bundle.path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "The model was opened before this process forked; open it in each process.",
        "5",
    ]


@pytest.mark.processes
def test_the_import_loads_nothing() -> None:
    code = (
        "import sys, fillmask; before = set(sys.modules); "
        "assert not {'onnxruntime', 'numpy', 'pydantic', 'fastapi'} & before, before; "
        "fillmask.Fill; assert 'onnxruntime' not in sys.modules; "
        "fillmask.FillMask; assert 'onnxruntime' in sys.modules; "
        "assert not {'fastapi', 'uvicorn', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_public_name_exists() -> None:
    for name in fillmask.__all__:
        assert getattr(fillmask, name).__name__ == name
    assert set(fillmask.__all__) <= set(dir(fillmask))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        fillmask.Nothing  # noqa: B018


def test_properties(model: FillMask) -> None:
    assert (model.tasks, model.mask_token, model.labels) == (("fill-mask",), "[MASK]", None)
    assert model.max_tokens == MAX_TOKENS
    assert repr(model) == f"<FillMask {model.name}>"


class Raising(Mapping[str, Any]):
    """Parameters whose iteration raises an error."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __len__(self) -> int:
        return 1

    def __getitem__(self, name: str) -> str:
        return name

    def __iter__(self) -> Iterator[str]:
        raise self._error


def test_what_a_caller_gives_runs_on_its_thread(model: FillMask, bundle: Path) -> None:
    threads = []

    def each(item: Any) -> Iterator[Any]:
        threads.append(threading.current_thread())
        assert model.fill(TEXT)  # on the thread of the model, this would wait for itself
        yield item

    def raising(error: BaseException) -> Iterator[Any]:
        yield "cat"
        raise error

    calls: list[tuple[Any, dict[str, Any]]] = [
        (each(TEXT), {}),
        (TEXT, {"targets": each("cat")}),
        ([TEXT], {"parameters": each({"targets": each("cat")})}),
    ]
    for inputs, options in calls:
        model.fill(inputs, **options)
    assert threads == [threading.current_thread()] * 4
    error = SystemExit(3)
    refused: list[tuple[Any, dict[str, Any]]] = [
        (raising(error), {}),
        (TEXT, {"targets": raising(error)}),
        ([TEXT], {"parameters": raising(error)}),
        ([TEXT], {"parameters": [Raising(error)]}),
        (Raising(error), {}),
    ]
    for inputs, options in refused:
        with pytest.raises(SystemExit) as caught:
            model.fill(inputs, **options)
        assert caught.value is error
    assert model.fill(TEXT)


def test_the_thread_of_the_model_may_close_it_but_not_wait(tiny: Tiny) -> None:
    # where the garbage collector runs, it runs the finalizers of the caller's objects
    before = threading.active_count()
    opened = FillMask(tiny.path, threads=1)

    async def finalize() -> None:
        with pytest.raises(RuntimeError, match="can't wait for the model"):
            opened.fill(TEXT)
        opened.close()

    opened._loop.run(finalize())
    for thread in threading.enumerate():
        if thread.name == "fillmask-close":
            thread.join(60)
    assert threading.active_count() == before

"""Client of huggingface_hub with service processes."""

from collections.abc import Callable

import httpx
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from fillmask.settings import Settings
from tests.service.api.labels.bundles import LABELS
from tests.service.tiny import VOCABULARY

pytestmark = pytest.mark.processes
TEXT, PLAIN = "Paris is the [MASK] of France.", "the cat sat on the mat"


@pytest.fixture
def url(tiny_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of a running service."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tiny_url


@pytest.mark.parametrize("path", ["", "/fill-mask", "/models/tiny"])
def test_fill_mask(url: str, path: str) -> None:
    # Each parameter of the client's `fill_mask` works as with Hugging Face's service. A service
    # without a file of API keys ignores the token.
    hub = InferenceClient(model=f"{url}{path}", token="hf_whatever")  # noqa: S106 - none
    fills = hub.fill_mask(TEXT)
    assert len(fills) == 5
    assert fills[0].score >= fills[1].score
    assert isinstance(fills[0].token, int)
    assert isinstance(fills[0].token_str, str)
    assert fills[0].sequence.startswith("Paris is the")

    assert len(hub.fill_mask(TEXT, top_k=2)) == 2

    fills = hub.fill_mask(TEXT, targets=["city", "capital"])
    assert {fill.token_str for fill in fills} == {"city", "capital"}

    fills = hub.fill_mask(TEXT, targets=["walking", "a dog", "city"])
    assert {fill.token_str for fill in fills} == {"walking", "a dog", "city"}
    assert {fill.token for fill in fills} == {-1, VOCABULARY.index("city")}

    with pytest.raises(HfHubHTTPError, match="inputs has no mask; write") as caught:
        hub.fill_mask("Paris is the capital of France.")
    assert caught.value.response is not None
    assert caught.value.response.status_code == 422

    with pytest.raises(HfHubHTTPError, match="must be a whole number from 1 to"):
        hub.fill_mask(TEXT, top_k=Settings().max_top_k + 1)


def test_other_tasks(url: str) -> None:
    # The client sends the bodies of all tasks to one path. The error names the tasks of the model.
    hub = InferenceClient(model=f"{url}/models/tiny")
    calls: list[Callable[[], object]] = [
        lambda: hub.text_classification("a dog"),
        lambda: hub.token_classification("a dog"),
        lambda: hub.feature_extraction("a dog"),
        lambda: hub.sentence_similarity("a dog", other_sentences=["a cat"]),
        lambda: hub.text_generation("a dog"),
        lambda: hub.zero_shot_classification("a dog", ["animal"]),
        lambda: hub.question_answering("Who?", "a dog"),
        lambda: hub.summarization("a dog"),
    ]
    for call in calls:
        with pytest.raises(HfHubHTTPError) as caught:
            call()
        assert caught.value.response is not None
        assert caught.value.response.status_code == 422
        message = caught.value.response.json()["error"]
        assert message.endswith("has the task fill-mask (POST /fill-mask, POST /score).")
    with pytest.raises(HfHubHTTPError, match="top_k") as caught:
        hub.fill_mask(TEXT, top_k=0)
    assert "/score" not in str(caught.value)  # the body has a mask, so it is meant as it is


def test_chat(url: str) -> None:
    # The client adds the path of OpenAI's API to the address.
    with pytest.raises(HfHubHTTPError) as caught:
        InferenceClient(model=url).chat_completion([{"role": "user", "content": "a dog"}])
    assert caught.value.response is not None
    assert caught.value.response.status_code == 404
    assert "POST /fill-mask" in caught.value.response.json()["error"]


@pytest.mark.parametrize("path", ["", "/classify", "/models/labels"])
def test_text_classification(labels_url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each parameter of the client works as with Hugging Face's service.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub = InferenceClient(model=f"{labels_url}{path}")
    labels = hub.text_classification(PLAIN)
    assert {one.label for one in labels} == set(LABELS)
    assert sum(one.score for one in labels) == pytest.approx(1)
    assert hub.text_classification(PLAIN, top_k=1) == labels[:1]
    assert hub.text_classification(PLAIN, top_k=10) == labels
    for function in ("sigmoid", "softmax", "none"):
        found = hub.text_classification(PLAIN, function_to_apply=function)
        body = {"inputs": PLAIN, "parameters": {"function_to_apply": function}}
        [expected] = httpx.post(f"{labels_url}/classify", json=body).json()
        assert [(one.label, one.score) for one in found] == [
            (one["label"], one["score"]) for one in expected
        ]
    with pytest.raises(HfHubHTTPError, match="must be a whole number of at least 1") as caught:
        hub.text_classification(PLAIN, top_k=0)
    assert caught.value.response is not None
    assert caught.value.response.status_code == 422

"""`text_classification` of huggingface_hub with a service process."""

import httpx
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from tests.service.api.labels.bundles import LABELS

pytestmark = pytest.mark.processes
TEXT = "the cat sat on the mat"


@pytest.mark.parametrize("path", ["", "/classify", "/models/labels"])
def test_text_classification(labels_url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each parameter of the client works as with Hugging Face's service.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub = InferenceClient(model=f"{labels_url}{path}")
    labels = hub.text_classification(TEXT)
    assert {one.label for one in labels} == set(LABELS)
    assert sum(one.score for one in labels) == pytest.approx(1)
    assert hub.text_classification(TEXT, top_k=1) == labels[:1]
    assert hub.text_classification(TEXT, top_k=10) == labels
    for function in ("sigmoid", "softmax", "none"):
        found = hub.text_classification(TEXT, function_to_apply=function)
        body = {"inputs": TEXT, "parameters": {"function_to_apply": function}}
        [expected] = httpx.post(f"{labels_url}/classify", json=body).json()
        assert [(one.label, one.score) for one in found] == [
            (one["label"], one["score"]) for one in expected
        ]
    with pytest.raises(HfHubHTTPError, match="must be a whole number of at least 1") as caught:
        hub.text_classification(TEXT, top_k=0)
    assert caught.value.response is not None
    assert caught.value.response.status_code == 422

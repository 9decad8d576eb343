"""JSON schema of a request of the Open Inference Protocol."""

from typing import Any

import jsonschema_rs
import pytest
from fastapi.testclient import TestClient
from pydantic_core import to_json

from fillmask.api.wire.open_inference.infer_request import InferRequest
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits

LIMITS = Limits(
    max_tokens=9, max_texts=4, max_masks=9, max_top_k=20, max_passes=9, max_body_bytes=999
)
TEXT = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a"]}
TARGETS = TEXT | {"name": "targets"}


@pytest.fixture(scope="module")
def schema(client: TestClient) -> Any:
    """Validator of the schema in the OpenAPI document, with these limits."""
    components = client.get("/openapi.json").json()["components"]
    name = "#/components/schemas/InferFillMaskRequest"
    return jsonschema_rs.validator_for({"$ref": name, "components": components})


def body(**fields: Any) -> dict[str, Any]:
    return {"inputs": [TEXT], **fields}


@pytest.mark.parametrize(
    "request_body",
    [
        body(),
        body(id=None, model_name=None, outputs=None),
        body(model_name="tiny"),
        body(inputs=[TEXT, TARGETS], outputs=[]),
        body(parameters={"top_k": 20, "binary_data_output": True, "order": None}),
        body(outputs=[{"name": "token", "parameters": {"binary_data": False}}]),
        body(inputs=[TEXT | {"shape": [1.0, 1], "data": [["a"]]}]),
    ],
)
def test_what_the_schema_takes_is_taken(schema: Any, request_body: dict[str, Any]) -> None:
    # Numbers without a fraction count as integers.
    assert schema.is_valid(request_body)
    read = InferRequest.read(to_json(request_body), None, LIMITS, "fill-mask")
    assert read.body.texts == ["a"]


@pytest.mark.parametrize(
    "request_body",
    [
        body(model_name=1),
        body(inputs=[]),
        body(inputs=[TEXT, TARGETS, TEXT | {"name": "text_pair"}, TEXT | {"name": "more"}]),
        body(inputs=[TEXT | {"datatype": "FP32"}]),
        body(inputs=[TEXT | {"shape": []}]),
        body(inputs=[TEXT | {"shape": [-1]}]),
        body(inputs=[TEXT | {"shape": [1.5]}]),
        body(inputs=[TEXT | {"shape": [True]}]),
        body(inputs=[TEXT | {"shape": ["1"]}]),
        body(inputs=[TEXT | {"shape": [0], "data": []}]),
        body(inputs=[TEXT | {"data": [["a"], []]}]),
        body(inputs=[TEXT | {"data": [1]}]),
        body(inputs=[TEXT | {"data": [[["a"]]]}]),
        body(inputs=[TEXT | {"parameters": {"x": 1}}]),
        body(inputs=[TEXT | {"parameters": {"binary_data_size": -1}}]),
        body(inputs=[TEXT | {"data": None, "parameters": {"binary_data_size": 0}}]),
        body(outputs=[{"name": "logits"}]),
        body(outputs=[{"name": "token", "parameters": {"binary_data": 1}}]),
        body(outputs=[{"name": "token", "parameters": {"x": True}}]),
        body(parameters={"binary_data_output": None}),
        body(parameters={"top_k": 21}),
        body(parameters={"top_k": 0}),
        body(parameters={"targets": []}),
        body(parameters={"targets": [" "]}),
        body(parameters={"targets": ["a", "a"]}),
        body(parameters={"x": 1}),
    ],
)
def test_what_the_schema_refuses_is_refused(schema: Any, request_body: dict[str, Any]) -> None:
    assert not schema.is_valid(request_body)
    with pytest.raises(InvalidRequestError):
        InferRequest.read(to_json(request_body), None, LIMITS, "fill-mask")

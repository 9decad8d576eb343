"""The JSON schema of a request of the Open Inference Protocol."""

from typing import Any

from service.api.bodies.fill_request import FillMaskRequest
from service.api.bodies.json_schema import inline_refs
from service.api.protocols.infer_request import InferBody
from service.api.protocols.metadata import OUTPUTS
from service.api.protocols.tensors import MAX_AXES

_FLAG = {"type": "boolean"}
_SIZE = {"type": "integer", "minimum": 4}  # 4 bytes for the length field of one text


def infer_schema(max_texts: int, max_top_k: int) -> dict[str, Any]:
    """Return the JSON schema of `InferBody` without references and with this server's limits."""
    schema = inline_refs(InferBody.model_json_schema())
    properties = schema["properties"]
    fills = FillMaskRequest.schema_with_limits(max_texts, max_top_k)
    parameters = fills["properties"]["parameters"]["anyOf"][0]
    properties["parameters"] = parameters | {
        "properties": parameters["properties"] | {"binary_data_output": _FLAG}
    }

    inputs = properties["inputs"]
    inputs |= {"minItems": 1, "maxItems": 3}  # texts, optional second texts and optional targets
    tensor = inputs["items"]["properties"]
    tensor["datatype"] = {"type": "string", "enum": ["BYTES"]}
    axis = {"type": "integer", "minimum": 0}
    tensor["shape"] |= {"minItems": 1, "maxItems": MAX_AXES, "items": axis}
    tensor["parameters"] = _only(binary_data_size=_SIZE)
    text = {"type": "string"}
    tensor["data"]["anyOf"][0] |= {
        "minItems": 1,
        "items": {"anyOf": [text, {"type": "array", "minItems": 1, "items": text}]},
    }

    output = properties["outputs"]["anyOf"][0]["items"]["properties"]
    output["name"] = {"type": "string", "enum": list(OUTPUTS["fill-mask"])}
    output["parameters"] = _only(binary_data=_FLAG)
    return schema


def _only(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that may have only these properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False}

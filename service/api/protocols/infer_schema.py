"""The JSON schema of a request of the Open Inference Protocol."""

from collections.abc import Sequence
from typing import Any

from service.api.bodies.values import inline_refs
from service.api.protocols.infer_request import InferBody
from service.api.protocols.metadata import OUTPUTS
from service.api.protocols.tensors import MAX_AXES
from service.bundles.description import Task

_FLAG = {"type": "boolean"}
_SIZE = {"type": "integer", "minimum": 4}  # 4 bytes for the length field of one text


def infer_schema(task: Task, body: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of `InferBody` without references and with this server's limits.

    Args:
        task: the only value of the parameter `task`.
        body: schema of a request for the same task in the service's own format.
    """
    schema = inline_refs(InferBody.model_json_schema())
    properties = schema["properties"]
    parameters = body["properties"]["parameters"]["anyOf"][0]
    chosen = {"type": "string", "enum": [task], "description": "Task of the request."}
    properties["parameters"] = parameters | {
        "properties": parameters["properties"] | {"task": chosen, "binary_data_output": _FLAG}
    }

    inputs = properties["inputs"]
    # one tensor of texts, and the optional tensors text_pair and targets
    inputs |= {"minItems": 1, "maxItems": 3 if task == "fill-mask" else 2}
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
    output["name"] = {"type": "string", "enum": list(OUTPUTS[task])}
    output["parameters"] = _only(binary_data=_FLAG)
    return schema


def with_model_names(schema: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of a request that may name only these models.

    Args:
        schema: return value of `infer_schema`.
        names: names and aliases of all models. Without names, the function returns `schema`.
    """
    if not names:
        return schema
    properties = schema["properties"]
    text, null = properties["model_name"]["anyOf"]
    named = properties["model_name"] | {"anyOf": [text | {"enum": list(names)}, null]}
    return schema | {"properties": properties | {"model_name": named}}


def _only(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that may have only these properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False}

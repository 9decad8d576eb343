"""JSON schemas of a request of the Open Inference Protocol."""

from typing import Any

from fillmask.api.bodies.json_schema import Components, reference, request_components
from fillmask.api.protocols.infer_request import InferBody
from fillmask.api.protocols.metadata import OUTPUTS
from fillmask.api.protocols.tensors import MAX_AXES
from fillmask.bundles.description import Task

_FLAG = {"type": "boolean"}
_SIZE = {"type": "integer", "minimum": 4}  # 4 bytes for the length field of one text


def infer_components(
    task: Task, name: str, parameters: dict[str, Any], *, required: bool, named: bool
) -> Components:
    """Return the JSON schemas of `InferBody` for a task and of its parts, with their limits.

    Args:
        task: the only value of the parameter `task`.
        name: name of the task in the names of the schemas, such as `FillMask`.
        parameters: schema of the task's parameters in the service's own format.
        required: true if a request must contain the parameter `task`.
        named: true if the component `ModelName` lists the names of the models.
    """
    components = request_components(InferBody)
    request, tensor, output = (
        components[part] for part in ("InferBody", "InputTensor", "RequestedOutput")
    )
    request |= {"title": f"Infer{name}Request", "examples": [_example(task, required=required)]}
    properties = request["properties"]
    properties["parameters"] = reference(f"Infer{name}Parameters")
    if named:
        properties["model_name"]["anyOf"][0] = reference("ModelName")
    chosen = {"type": "string", "enum": [task], "description": "Task of the request."}
    parameters = parameters | {
        "title": f"Infer{name}Parameters",
        "properties": parameters["properties"] | {"task": chosen, "binary_data_output": _FLAG},
    }
    if required:
        request["required"] = [*request["required"], "parameters"]
        parameters["required"] = ["task"]

    # one tensor of texts, and the optional tensors text_pair and targets
    properties["inputs"] |= {"minItems": 1, "maxItems": 3 if task == "fill-mask" else 2}
    axis = {"type": "integer", "minimum": 0}
    text = {"type": "string"}
    fields = tensor["properties"]
    fields["datatype"] = {"type": "string", "enum": ["BYTES"]}
    fields["shape"] |= {"minItems": 1, "maxItems": MAX_AXES, "items": axis}
    fields["parameters"] = _only(binary_data_size=_SIZE)
    fields["data"]["anyOf"][0] |= {
        "minItems": 1,
        "items": {"anyOf": [text, {"type": "array", "minItems": 1, "items": text}]},
    }

    properties["outputs"]["anyOf"][0]["items"] = reference(f"Infer{name}Output")
    output["title"] = f"Infer{name}Output"
    output["properties"]["name"] = {"type": "string", "enum": list(OUTPUTS[task])}
    output["properties"]["parameters"] = _only(binary_data=_FLAG)
    return {
        f"Infer{name}Request": request,
        f"Infer{name}Parameters": parameters,
        f"Infer{name}Output": output,
        "InputTensor": tensor,
    }


def _example(task: Task, *, required: bool) -> dict[str, Any]:
    text = "Paris is the [MASK] of France." if task == "fill-mask" else "I loved this film."
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}
    return {"inputs": [tensor]} | ({"parameters": {"task": task}} if required else {})


def _only(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that may have only these properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False}

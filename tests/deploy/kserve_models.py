"""Check of KServe's objects against the models of KServe's SDK.

The command `python kserve_models.py` runs in the environment of KServe's client. It reads a list of
objects as JSON. For each object it prints a list of the unknown fields, missing fields and wrong
types as JSON. No package has KServe's own CRDs.
"""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

KSERVE = importlib.import_module("kserve.models")
KUBERNETES = importlib.import_module("kubernetes.client.models")
MODELS = {
    "ClusterServingRuntime": "V1alpha1ClusterServingRuntime",
    "ClusterStorageContainer": "V1alpha1ClusterStorageContainer",
    "InferenceService": "V1beta1InferenceService",
    "ServingRuntime": "V1alpha1ServingRuntime",
}
SCALARS = {"bool": bool, "int": int, "str": str}
LIST = re.compile(r"list\[(.+)\]")
MAP = re.compile(r"dict\(str, (.+)\)")


def errors(value: Any, kind: str, place: str) -> Iterator[str]:
    """Yield the errors in a value and in all values inside.

    Args:
        kind: type of the value in the notation of the SDK, e.g. `list[V1Container]`.
        place: path of the value in its object.
    """
    if kind in SCALARS:
        if type(value) is not SCALARS[kind]:
            yield f"{place} must be of type {kind} (got {value!r})"
    elif match := LIST.fullmatch(kind):
        if not isinstance(value, list):
            yield f"{place} must be a list (got {value!r})"
            return
        for index, item in enumerate(value):
            yield from errors(item, match[1], f"{place}[{index}]")
    elif not isinstance(value, dict):
        yield f"{place} must be a map (got {value!r})"
    elif match := MAP.fullmatch(kind):
        for key, item in value.items():
            yield from errors(item, match[1], f"{place}.{key}")
    else:
        yield from errors_of_model(value, kind, place)


def errors_of_model(value: dict[str, Any], kind: str, place: str) -> Iterator[str]:
    """Yield the errors in the value of a class of the SDK or of the Kubernetes client."""
    if not hasattr(KSERVE, kind):
        # the classes of the Kubernetes client check all values inside
        try:
            getattr(KUBERNETES, kind).model_validate(value)
        except ValueError as error:
            yield f"{place}: {error}"
        return
    model = getattr(KSERVE, kind)
    attributes = {field: name for name, field in model.attribute_map.items()}
    for field in value.keys() - attributes.keys():
        yield f"{place}.{field} is unknown"
    known = {attributes[field]: item for field, item in value.items() if field in attributes}
    try:
        model(**known)
    except ValueError as error:  # a missing field
        yield f"{place}: {error}"
    for name, item in known.items():
        yield from errors(item, model.openapi_types[name], f"{place}.{model.attribute_map[name]}")


if __name__ == "__main__":
    found = [[*errors(each, MODELS[each["kind"]], each["kind"])] for each in json.load(sys.stdin)]
    print(json.dumps(found))  # noqa: T201 - the test reads the output

"""Check of KServe's objects against the models of KServe's SDK, because no package has its CRDs.

`python kserve_models.py` runs in the environment of KServe's client. It reads a list of objects as
JSON, and prints the first error of each object as JSON: an unknown or missing field, a wrong type.
"""

import importlib
import json
import re
import sys
from typing import Any

KSERVE = importlib.import_module("kserve.models")
KUBERNETES = importlib.import_module("kubernetes.client.models")
SCALARS = {"bool": bool, "int": int, "str": str}


def build(value: Any, kind: str) -> Any:
    """Return a value as the type of the SDK that has a name, such as `list[V1Container]`.

    Raises:
        ValueError: the value is not of this type.
    """
    if kind in SCALARS:
        if type(value) is not SCALARS[kind]:
            raise ValueError(f"must be of type {kind} (got {value!r})")
        return value
    if match := re.fullmatch(r"list\[(.+)\]", kind):
        return [build(item, match[1]) for item in value]
    if match := re.fullmatch(r"dict\(str, (.+)\)", kind):
        return {key: build(item, match[1]) for key, item in value.items()}
    if not hasattr(KSERVE, kind):
        return getattr(KUBERNETES, kind).model_validate(value)
    model = getattr(KSERVE, kind)
    attributes = {field: name for name, field in model.attribute_map.items()}
    if unknown := value.keys() - attributes.keys():
        raise ValueError(f"{kind} has no field {', '.join(sorted(unknown))}")
    known = {attributes[field]: item for field, item in value.items()}
    return model(**{name: build(item, model.openapi_types[name]) for name, item in known.items()})


def error_of(each: dict[str, Any]) -> str | None:
    version = each["apiVersion"].rpartition("/")[2]
    try:
        build(each, f"{version[0].upper()}{version[1:]}{each['kind']}")
    except ValueError as error:
        return str(error)
    return None


if __name__ == "__main__":
    print(json.dumps([error_of(each) for each in json.load(sys.stdin)]))  # noqa: T201 - for the test

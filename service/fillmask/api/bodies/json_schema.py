"""JSON schemas of bodies, as components of the OpenAPI document.

Generators of clients name a type after its component. They reject a schema without a name that
occurs twice in the document.
"""

from typing import Any

from pydantic import BaseModel

COMPONENTS_PATH = "#/components/schemas/"

# JSON schemas by name, which refer to each other by name
Components = dict[str, dict[str, Any]]


def reference(name: str) -> dict[str, Any]:
    """Return the schema that refers to a component."""
    return {"$ref": COMPONENTS_PATH + name}


def request_components(model: type[BaseModel]) -> Components:
    """Return the JSON schema of a request body and the schemas of its parts.

    The parts are the objects and the choices, such as "independent" or "joint". The name of a
    choice is the name of its field, such as `OnLongText` for `on_long_text`.
    """
    schema = model.model_json_schema(ref_template=COMPONENTS_PATH + "{model}")
    objects: Components = {**schema.pop("$defs", {}), model.__name__: schema}
    choices: Components = {}
    for component in objects.values():
        for field, described in component.get("properties", {}).items():
            # generators make a field with a default mandatory, even if the default is null
            if described.get("default", ...) is None:
                del described["default"]
            for index, option in enumerate(described.get("anyOf", ())):
                if "enum" in option:
                    name = field.title().replace("_", "")
                    choices[name] = option
                    described["anyOf"][index] = reference(name)
    return objects | choices


def never_null(schema: dict[str, Any]) -> None:
    """Change the schema of an optional field of a response, which is either missing or not null."""
    del schema["default"]
    [value, _null] = schema.pop("anyOf")
    schema |= value

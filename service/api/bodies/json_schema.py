"""JSON schemas of request bodies without references."""

from typing import Any


def inline_refs(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace the references in a pydantic schema with their definitions."""
    definitions = schema.get("$defs", {})

    def inlined(value: Any) -> Any:
        if isinstance(value, list):
            return [inlined(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return inlined(definitions[value["$ref"].removeprefix("#/$defs/")])
        return {key: inlined(item) for key, item in value.items() if key != "$defs"}

    result: dict[str, Any] = inlined(schema)
    return result

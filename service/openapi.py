"""What the OpenAPI document says of bodies that FastAPI does not read itself."""

import re
from typing import Any


def takes(schema: dict[str, Any]) -> dict[str, Any]:
    """An operation's request body: JSON of a schema, in one piece."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def in_one_piece(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of pydantic's, with its definitions in the places that refer to them."""
    definitions = schema.get("$defs", {})

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return resolved(definitions[value["$ref"].removeprefix("#/$defs/")])
        return {key: resolved(one) for key, one in value.items() if key != "$defs"}

    whole: dict[str, Any] = resolved(schema)
    return whole


def documented_methods(document: dict[str, Any], path: str) -> list[str]:
    """The methods of a path: those of the template that has the most of it in so many words."""
    fitting = [
        template
        for template in document["paths"]
        if re.fullmatch(".+".join(map(re.escape, re.split(r"\{\w+\}", template))), path)
    ]
    best = max(fitting, key=lambda template: len(re.sub(r"\{\w+\}", "", template)), default=None)
    return [method.upper() for method in document["paths"].get(best, ())]

"""What the OpenAPI document says beyond the types of the routes."""

from collections.abc import Mapping, Sequence
from typing import Any

from fillmask.api.operations import BODIES, COMPONENTS
from fillmask.middleware.authentication import is_public

# groups of operations, in the order of the document and of the page
TAGS: list[dict[str, Any]] = [
    {"name": "Fills", "description": "The best tokens, words or targets in place of masks."},
    {"name": "Scores", "description": "The log-probability of each token of a text."},
    {"name": "Labels", "description": "The labels of texts."},
    {"name": "Entities", "description": "The labels of tokens: names, places and so on."},
    {
        "name": "Reranking",
        "description": "For the clients of text-embeddings-inference, Cohere and Jina AI.",
    },
    {
        "name": "Sparse vectors",
        "description": "Weighted words of texts for search, as in text-embeddings-inference.",
    },
    {"name": "Hugging Face", "description": "Further paths for Hugging Face's clients."},
    {"name": "Open Inference Protocol v2", "description": "For Triton's and KServe's clients."},
    {"name": "V1 protocol", "description": "For clients of TensorFlow Serving and KServe."},
    {"name": "Service", "description": "Models, health, metrics and the playground."},
]

DESCRIPTION = """\
Fills masks in texts, scores, classifies and reranks texts, finds entities and makes sparse vectors
with encoders.

A schema cannot express some rules, because a rule needs the model's tokenizer or compares two parts
of a request. A request that breaks one of these rules gets 422 and a reason.

- The model has the task (`tasks` in GET /info). Only a model with `pairs` reads pairs.
- A text or a pair to fill contains at least one mask (`mask_token` in GET /info). A text to score
  contains no mask. No text contains another special token. Every text has at least one token. Only
  texts for sparse vectors and some, but not all, of the texts to order may be blank.
- A request stays within the `limits` in GET /info for texts, fills, tokens, masks and passes, and
  within its time limit. It has at most 65,536 JSON values and 262,144 bytes of targets.
- The model's vocabulary can spell each target.
- A list of parameters requires a list with the same number of texts.
- With `on_long_text` "window", an overlong pair has all its masks in `text`.
- A text to score starts with its `prefix`. Its `span` starts before it ends, and ends within the
  text. A prefix or a span cuts no token and leaves at least one token to score.
- `prefix` and `span` are mutually exclusive. For a pair, they require `part`. Only a pair has the
  part "text_pair".
- `targets`, `granularity` "word" and `strategy` "joint" are mutually exclusive. With
  `strategy` "joint", all masks of a text fit into one input of the model.
- The shape of a tensor matches its number of elements. One tensor contains the texts. The tensors
  named "text_pair", with one element per text, and "targets" are optional.
- `model_name` names the model in the path, and so does `model` if a path has a name.
- The maximum tokens of a query, of a document and of both are -1 or at least `max_tokens`.
- `ignore_labels` has only labels that the answer can have. A pair to classify has no windows.
- Where a path reads several kinds of bodies, the model's first task or the parameter `task`
  decides.
"""

_API_KEY = "ApiKey"
_LISTS = ("inputs", "instances", "parameters", "texts", "documents")  # with one item per text


def complete(
    document: dict[str, Any],
    names: Sequence[str],
    *,
    max_texts: int,
    max_top_k: int,
    api_keys: bool,
) -> None:
    """Add the bodies, the limits and the names of this service, and the API key."""
    schemas: dict[str, Any] = document["components"]["schemas"]
    for model in sorted(BODIES, key=lambda body: body.__name__):
        schema = model.model_json_schema(ref_template=f"{COMPONENTS}{{model}}")
        schemas |= {**schema.pop("$defs", {}), model.__name__: schema}
    _add_limits(schemas, max_texts, max_top_k)
    for name in ("HTTPValidationError", "ValidationError"):  # of FastAPI, which validates nothing
        schemas.pop(name, None)
    if names:
        schemas["ModelName"] = {"type": "string", "enum": list(names)}
    if api_keys:
        document["components"]["securitySchemes"] = {_API_KEY: {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        for method, described in operations.items():
            closed = api_keys and not is_public(method.upper(), path)
            _complete_operation(described, named=bool(names), closed=closed)


def _complete_operation(described: dict[str, Any], *, named: bool, closed: bool) -> None:
    if "requestBody" not in described:
        described["responses"].pop("422", None)
    for parameter in described.get("parameters", ()):
        if named and parameter["name"] == "name":
            parameter["schema"] = {"$ref": f"{COMPONENTS}ModelName"}
    if closed:
        described["security"] = [{_API_KEY: []}]
    else:
        described["responses"].pop("401", None)


def _add_limits(schemas: Mapping[str, Any], max_texts: int, max_top_k: int) -> None:
    for name, schema in schemas.items():
        fields = schema.get("properties", {})
        if name.endswith("FillMaskParameters"):
            fields["top_k"]["anyOf"][0]["maximum"] = max_top_k
        if name.endswith("Request"):
            for field in (fields.get(one) for one in _LISTS):
                for option in (field, *field.get("anyOf", ())) if field else ():
                    if option.get("type") == "array":
                        option.setdefault("maxItems", max_texts)

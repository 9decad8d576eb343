"""The V1 protocol of TensorFlow Serving and KServe: `:predict`, bodies in and out. No HTTP."""

from collections.abc import Sequence

from service.body import Limits, Reading
from service.errors import InvalidRequestError, quote
from service.json_body import read_json
from service.ranking import Fill
from service.schemas import FillMaskBody, answer_json

_FIELDS = ("instances", "parameters")


def read_predict(body: bytes, content_type: str | None, limits: Limits) -> FillMaskBody:
    """Parse and check a request: `{"instances": ["a [MASK]"], "parameters": {"top_k": 3}}`.

    Raises:
        FillMaskError: one sentence about the first thing that is wrong.
    """
    value = read_json(body, content_type)
    if not isinstance(value, dict):
        raise InvalidRequestError("The body must be a JSON object.")
    for name in value:
        if name not in _FIELDS:
            raise InvalidRequestError(
                f"Unknown field {quote(name)} in the body; allowed are {' and '.join(_FIELDS)}."
            )
    texts = value.get("instances")
    if not isinstance(texts, list):
        raise InvalidRequestError("instances must be a list of texts.")
    names = Reading(limits, texts="instances")
    return FillMaskBody.check({"inputs": texts, "parameters": value.get("parameters")}, names)


def predictions(fills: Sequence[Sequence[Sequence[Fill]]]) -> bytes:
    """The body of an answer: of each instance what Hugging Face answers to a text alone."""
    return b'{"predictions":%b}' % answer_json(fills, single=False)

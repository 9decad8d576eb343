"""JSON of a request body."""

from fillmask.api.json_size import check_value_count
from fillmask.errors import ContentTypeError, MalformedRequestError, quote
from fillmask.strict_json import parse_json


def read_json(body: bytes, content_type: str | None) -> object:
    """Parse the JSON of a request body.

    Raises:
        ContentTypeError: the content type is not application/json.
        MalformedRequestError: the body is empty, or `parse_json` raises this error.
        InvalidRequestError: the body has more values than any valid request, a duplicate field or
            an unpaired surrogate. Such fields and surrogates are ambiguous.
    """
    if (content_type or "").partition(";")[0].strip().lower() != "application/json":
        raise ContentTypeError(
            f"The content type must be application/json (got {quote(content_type or '')})."
        )
    if not body or body.isspace():
        raise MalformedRequestError("The body is empty; it must be a JSON object.")
    check_value_count(body, "The body")
    return parse_json(body, "The body")

"""Check for schemathesis, which sends requests that fit the OpenAPI document.

The service may reject such a request only for a rule that no schema can express. The errors of
these rules match `fillmask.api.openapi.DESCRIPTION`.
"""

import re
from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response

# Messages of these rules. Any other message of a 422 is about the schema.
BEYOND_THE_SCHEMA = re.compile(
    r"does not have the task|is a pair, but this model reads only single texts"
    r"|exceeds the model's input and has a mask in text_pair"
    r"|has no mask; write|has no word that the model's vocabulary knows"
    r"|has a mask; remove "
    r"|is a special token of the model|has a special token of the model"
    r"|has no tokens; write at least one word|has characters that the model's vocabulary lacks"
    r"|set part to text or text_pair|has no text_pair; |must start with prefix|span must end at "
    r"|cuts the token|selects no token|has no tokens after prefix|must be less than its end"
    r"|must have at most \d+ (tokens|characters|JSON values|bytes in UTF-8|masks)"
    r"|needs? (\d+|more) passes"
    r"|The response could have|which is too long for its time limit"
    r"|must be null or (at least \d+, the tokens of query|a name of the model in the path)"
    r"|parameters is a list but \S+ is one text|parameters must have one object per text of"
    r"|exclude each other|masks too far apart"
    r"|The input .* has the shape|The input .* is a duplicate|must have either data or"
    r"|The input .* has no data|inputs must have one tensor of texts"
    r"|The input .* must have one text per text of|text_pair must be a non-blank text",
    re.DOTALL,
)


# paths with two kinds of bodies, of which the model's task selects one
UNIONS = (":predict", "/infer")


@schemathesis.check
def schema_says_what_is_refused(
    _context: CheckContext, response: Response, case: Case[Any]
) -> None:
    """Fail if the service rejects a request for a reason that a schema can express."""
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    if case.path.endswith(UNIONS):
        return
    if positive and response.status_code == 422:
        sentence = response.json()["error"]
        assert BEYOND_THE_SCHEMA.search(sentence), f"The schema does not say: {sentence}"

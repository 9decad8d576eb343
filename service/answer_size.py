"""How large an answer will be, known before it is computed."""

from collections.abc import Sequence

from service.errors import InvalidRequestError
from service.tokenizer import EncodedText

# Each fill repeats its whole text, so an answer can be far larger than its request.
MAX_ANSWER_CHARS = 8 * 2**20
# making an answer of this size takes 0.3 ms; going to another thread and back takes 0.03 ms
LONG_ANSWER_CHARS = 100_000
# so many targets are sorted in 0.3 ms
_LONG_RANKING = 5_000
# making a fill costs about as much as copying this many characters
_FILL_COST_CHARS = 500


def is_long(
    texts: Sequence[str], encoded: Sequence[EncodedText], fills: int, targets: int = 0
) -> bool:
    """Whether the answer is long, or takes long to make.

    Args:
        texts: as they were written.
        encoded: the same, as the model reads them.
        fills: of each mask.
        targets: what they are chosen from.

    Raises:
        InvalidRequestError: it is too long.
    """
    masks = chars = 0
    for text, encoded_text in zip(texts, encoded, strict=True):
        masks += len(encoded_text.mask_spans)
        chars += len(encoded_text.mask_spans) * len(text)
    if chars * fills > MAX_ANSWER_CHARS:
        raise InvalidRequestError(
            f"The answer would have {chars * fills} characters of text; at most "
            f"{MAX_ANSWER_CHARS} are allowed, so ask for fewer texts, masks or fills."
        )
    many = masks * targets > _LONG_RANKING
    return many or (masks * _FILL_COST_CHARS + chars) * fills > LONG_ANSWER_CHARS

"""Check of the template by which a tokenizer joins texts and special tokens.

Windows and scores need each text of a pair once and in order.
"""

from tokenizers import Tokenizer

from fillmask.errors import BundleError
from fillmask.tokenization.tokenizer_file import is_library_failure


def check_template(
    tokenizer: Tokenizer, mask_token: str, mask_token_id: int, *, pairs: bool
) -> None:
    """Check that the template keeps a mask in the place of each text.

    Args:
        pairs: whether to check the template of pairs too.

    Raises:
        BundleError: the template drops or repeats a text, or the tokenizer cannot read the mask.
    """
    for second, expected in ((None, [0]), (mask_token, [0, 1]))[: 1 + pairs]:
        try:
            encoding = tokenizer.encode(mask_token, second)
        except BaseException as error:
            if not is_library_failure(error):
                raise
            raise BundleError(
                f"The bundle is invalid: tokenizer.json cannot tokenize {mask_token}; "
                "export the bundle again."
            ) from error
        ids, is_special = encoding.ids, encoding.special_tokens_mask
        # a repeated part has no place
        places = [-1 if place is None else place for place in encoding.sequence_ids]
        ordinary = [position for position, special in enumerate(is_special) if not special]
        masks = [places[position] for position in ordinary if ids[position] == mask_token_id]
        found = [places[position] for position in ordinary]
        if -1 in found or found != sorted(found) or masks != expected:
            raise BundleError(
                "The bundle is invalid: the post_processor of tokenizer.json must keep each text "
                "once and in order; export the bundle again."
            )

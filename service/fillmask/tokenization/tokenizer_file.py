"""Loader of tokenizer.json for texts in which the mask is the only special token."""

import json
from typing import Any, NamedTuple

from tokenizers import Tokenizer, models, pre_tokenizers

from fillmask.errors import BundleError
from fillmask.tokenization.unigram import Unigram

# By default, the tokenizers library caches 10,000 words of up to 256 letters, which take up to
# 100 MB. 1,000 words take up to 10 MB.
_CACHED_BPE_WORDS = 1_000


class LoadedTokenizer(NamedTuple):
    """A loaded tokenizer.json.

    Attributes:
        tokenizer: tokenizer that ignores the file's truncation and padding settings.
        vocabulary: map between the names and the ids of the model's own tokens.
        description: content of the file without the vocabulary.
        unknown_id: id of the unknown token. None if the file names no unknown token.
    """

    tokenizer: Tokenizer
    vocabulary: Tokenizer | Unigram
    description: dict[str, Any]
    unknown_id: int | None


def load_tokenizer(
    tokenizer_json: bytes, mask_token: str, mask_token_id: int, *, reads_special: bool = False
) -> LoadedTokenizer:
    """Load a tokenizer from the content of its file.

    Args:
        reads_special: whether special tokens in a text are read as such.

    Raises:
        Exception: the content is not a tokenizer. The tokenizers library raises no narrower type.
    """
    description = json.loads(tokenizer_json)
    model, added_tokens = description["model"], description["added_tokens"]
    if isinstance(model["vocab"], dict):
        _check_distinct_ids(model["vocab"], mask_token, mask_token_id)
    _make_mask_ordinary(added_tokens, mask_token, mask_token_id)
    unigram = None
    if isinstance(
        model["vocab"], list
    ):  # only Unigram has a list of pieces, and older files omit the type
        special_ids = [added["id"] for added in added_tokens if added["special"]]
        unigram = Unigram(model, excluded_ids=special_ids)
        # the tokenizers library needs only the ids of the added tokens
        ids = {added["content"]: added["id"] for added in added_tokens}
        description["model"] = {"type": "WordLevel", "vocab": ids, "unk_token": ""}
    tokenizer = Tokenizer.from_str(json.dumps(description))
    if isinstance(tokenizer.model, models.BPE):
        tokenizer.model._resize_cache(_CACHED_BPE_WORDS)  # noqa: SLF001 - the only way to limit it
    description["model"] = model
    del model["vocab"]
    if unigram is not None:
        own = pre_tokenizers.PreTokenizer.custom(unigram)
        before = [tokenizer.pre_tokenizer] if tokenizer.pre_tokenizer else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, own])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # By default, "[SEP]" in a text is five ordinary characters instead of a special token.
    # The mask stays a single token, because the mask is an ordinary token now.
    tokenizer.encode_special_tokens = not reads_special
    unknown_id = model.get("unk_id")
    if unknown_id is None and (unknown_token := model.get("unk_token")) is not None:
        unknown_id = tokenizer.token_to_id(unknown_token)
    return LoadedTokenizer(tokenizer, unigram or tokenizer, description, unknown_id)


def is_library_failure(error: BaseException) -> bool:
    """Return whether the tokenizers library has failed.

    The library raises bare Exception. A panic of the library is a BaseException, whose class has no
    importable name.
    """
    return type(error) is Exception or type(error).__name__ == "PanicException"


def _check_distinct_ids(vocabulary: dict[str, int], mask_token: str, mask_token_id: int) -> None:
    """Check that every token has its own id. Otherwise a word of a text could be a mask.

    Raises:
        ValueError: two tokens have the same id.
    """
    ids = set(vocabulary.values())
    if len(ids) < len(vocabulary):
        raise ValueError("each token must have its own id")
    if mask_token not in vocabulary and mask_token_id in ids:
        raise ValueError("the mask must have its own id")


def _make_mask_ordinary(
    added_tokens: list[dict[str, Any]], mask_token: str, mask_token_id: int
) -> None:
    """Mark the mask as an ordinary token, because special tokens do not match in texts."""
    for added in added_tokens:
        if added["content"] == mask_token:
            added["special"] = False
            return
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    added_tokens.append({"id": mask_token_id, "content": mask_token, **flags})


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

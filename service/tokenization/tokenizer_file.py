"""tokenizer.json as the service loads it: the mask is the only special token a text can hold."""

import json
from typing import Any, NamedTuple

from tokenizers import Tokenizer, models, pre_tokenizers

from service.tokenization.unigram import Unigram

# the tokenizers library keeps 10,000 words of up to 256 letters, in up to 100 MB; so many, in 10 MB
_CACHED_BPE_WORDS = 1_000


class LoadedTokenizer(NamedTuple):
    """A tokenizer.json, loaded.

    Attributes:
        tokenizer: cuts texts, without the truncation and padding its file asks for.
        vocabulary: has the ids and names of tokens that were not added to the model's.
        description: what was read of the file but for the vocabulary.
        unknown_id: the id of what the vocabulary does not have, by whichever name the model gives
            it.
    """

    tokenizer: Tokenizer
    vocabulary: Tokenizer | Unigram
    description: dict[str, Any]
    unknown_id: int | None


def load_tokenizer(tokenizer_json: bytes, mask_token: str, mask_token_id: int) -> LoadedTokenizer:
    """Build the tokenizer.

    Args:
        tokenizer_json: content of a Hugging Face tokenizer.json.
        mask_token: the text that marks a mask.
        mask_token_id: its id.

    Raises:
        Exception: the content is not a tokenizer; tokenizers raises nothing narrower.
    """
    description = json.loads(tokenizer_json)
    model, added_tokens = description["model"], description["added_tokens"]
    _make_mask_ordinary(added_tokens, mask_token, mask_token_id)
    unigram = None
    if isinstance(model["vocab"], list):  # pieces with their scores: older files name no type
        unigram = Unigram(model, never=[added["id"] for added in added_tokens if added["special"]])
        # leaves tokenizers what it needs to know of the model: the ids of the added tokens
        ids = {added["content"]: added["id"] for added in added_tokens}
        description["model"] = {"type": "WordLevel", "vocab": ids, "unk_token": ""}
    tokenizer = Tokenizer.from_str(json.dumps(description))
    if isinstance(tokenizer.model, models.BPE):
        tokenizer.model._resize_cache(_CACHED_BPE_WORDS)  # noqa: SLF001 - the only way to bound it
    description["model"] = model
    del model["vocab"]
    if unigram is not None:
        own = pre_tokenizers.PreTokenizer.custom(unigram)
        before = [tokenizer.pre_tokenizer] if tokenizer.pre_tokenizer else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, own])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # "[SEP]" in a text is five characters; only the mask, made ordinary above, is one token
    tokenizer.encode_special_tokens = True
    unknown_id = model.get("unk_id")
    if unknown_id is None and (unknown_token := model.get("unk_token")) is not None:
        unknown_id = tokenizer.token_to_id(unknown_token)
    return LoadedTokenizer(tokenizer, unigram or tokenizer, description, unknown_id)


def _make_mask_ordinary(
    added_tokens: list[dict[str, Any]], mask_token: str, mask_token_id: int
) -> None:
    """Have the mask matched in text as one token, and not switched off with the special ones."""
    for added in added_tokens:
        if added["content"] == mask_token:
            added["special"] = False
            return
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    added_tokens.append({"id": mask_token_id, "content": mask_token, **flags})

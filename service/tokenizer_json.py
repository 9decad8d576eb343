"""tokenizer.json as the service loads it: the mask is the only special token a text can hold."""

import json
from typing import Any

from tokenizers import Tokenizer

HIDING = " "  # behind the name of a piece: SentencePiece's stretches of words have no spaces


def load_tokenizer(
    tokenizer_json: bytes, mask_token: str, mask_token_id: int
) -> tuple[Tokenizer, dict[str, Any]]:
    """Build the tokenizer, without the truncation and padding its file asks for.

    Args:
        tokenizer_json: content of a Hugging Face tokenizer.json.
        mask_token: the text that marks a mask.
        mask_token_id: its id.

    Returns:
        The tokenizer, and what was read of its file but for the vocabulary.

    Raises:
        Exception: the content is not a tokenizer; tokenizers raises nothing narrower.
    """
    description = json.loads(tokenizer_json)
    _make_mask_ordinary(description["added_tokens"], mask_token, mask_token_id)
    _hide_special_pieces(description)
    text = json.dumps(description)
    del description["model"]["vocab"]  # of XLM-RoBERTa's 250,002 pieces, two copies are enough
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # "[SEP]" in a text is five characters; only the mask, made ordinary above, is one token
    tokenizer.encode_special_tokens = True
    return tokenizer, description


def unknown_token_id(tokenizer: Tokenizer, description: dict[str, Any]) -> int | None:
    """The id of what the vocabulary does not have, by whichever name the model gives it."""
    model = description["model"]
    if (unknown_id := model.get("unk_id")) is not None:
        return int(unknown_id)
    unknown_token = model.get("unk_token")
    return None if unknown_token is None else tokenizer.token_to_id(unknown_token)


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


def _hide_special_pieces(description: dict[str, Any]) -> None:
    """Keep SentencePiece from reading "</s>" in a text as the piece of that name.

    Unigram looks up every stretch of a word, and scores special pieces best of all. A space behind
    their names puts them out of its reach. Scores and ids stay.
    """
    vocabulary = description["model"]["vocab"]
    if not isinstance(vocabulary, list):
        return
    added_tokens = description["added_tokens"]
    hidden = {added["id"] for added in added_tokens if added["special"]} & set(
        range(len(vocabulary))
    )
    for token_id in hidden:
        vocabulary[token_id][0] += HIDING
    description["added_tokens"] = [added for added in added_tokens if added["id"] not in hidden]

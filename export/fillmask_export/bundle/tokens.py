"""Comparison of a bundle's tokenizer with the one that transformers makes of the same files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.encoded_text import EncodedText, token_spans
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.truncation import truncate
from fillmask_export.heads.errors import VerificationError
from fillmask_export.sample_texts import TEXTS

_LINES = 6  # of each file, but all of the odd ones
_ODD = "mixed"
_SHORT_TOKENS = 12


def battery(mask_token: str, special_tokens: Iterable[str]) -> list[str]:
    """Return texts of many languages and domains, with masks and special tokens in some."""
    texts = ["", " ", mask_token, f"{mask_token} {mask_token}{mask_token}"]
    for file in sorted(TEXTS.rglob("*.txt")):
        lines = file.read_text(encoding="utf-8").split("\n")[:-1]
        texts += lines if file.stem == _ODD else lines[:_LINES]
    plain = texts[4:]
    for text in plain[:: _LINES // 2]:
        half = len(text) // 2
        words = text.split(" ")
        words[len(words) // 2] = mask_token
        texts += [f"{text[:half]}{mask_token}{text[half:]}", " ".join(words), text.swapcase()]
    return texts + [f"{text}{token} {token}" for text in plain[:1] for token in special_tokens]


def check_tokens(
    tokenizer: Tokenizer, reference: Any, special_tokens: Sequence[str], max_tokens: int
) -> dict[str, Any]:
    """Compare ids, token types and spans of texts, pairs and truncated texts.

    Args:
        special_tokens: texts of all special tokens.

    Returns:
        The figures of bundle.json, which are the class in transformers and the number of inputs.

    Raises:
        VerificationError: an input has other tokens. The message names the first.
    """
    texts = battery(tokenizer.mask_token, special_tokens)
    inputs: list[tuple[InputText, int | None]] = [(text, None) for text in texts]
    longest = [" ".join(texts[start : start + 40]) for start in range(4, len(texts), 160)]
    inputs += [(text, limit) for text in longest for limit in (_SHORT_TOKENS, max_tokens)]
    if tokenizer.reads_pairs:
        pairs = list(map(TextPair, texts[::5], texts[3::5]))
        # code in Python truncates pairs to other lengths
        limits = (None, _SHORT_TOKENS) if reference.is_fast else (None,)
        inputs += [(pair, limit) for pair in pairs for limit in limits]
    compared = 0
    special = tokenizer.special_token_ids - {tokenizer.mask_token_id}
    for text, limit in inputs:
        typed = tokenizer.find_typed(str(text))
        may_match = typed or tokenizer.find_typed(str(text).lower())
        if typed and (tokenizer.mask_token in str(text) or not reference.is_fast):
            continue  # only for us, the mask is not typed like the other special tokens
        try:
            words = tokenizer.encode_words(text)
            short = None if limit is None else truncate(words, limit, "", tokenizer.truncation_side)
        except InvalidRequestError:
            continue  # the client gets an error, not other tokens
        ours = short or tokenizer.encode(text)
        options: dict[str, Any] = {} if limit is None else {"truncation": True, "max_length": limit}
        if typed:
            options["split_special_tokens"] = True
        theirs = reference(*_parts(text), **options)
        framing = tokenizer.count_special_tokens(text)
        if may_match and sum(one in special for one in theirs["input_ids"]) > framing:
            continue  # Unigram finds special pieces in any text, which ours leaves out
        types = theirs.get("token_type_ids") if tokenizer.has_token_types else None
        found = ours.input_ids.tolist(), _types(ours)
        if found != (theirs["input_ids"], types if types and any(types) else None):
            raise _difference(text, reference, found[0], theirs["input_ids"])
        if limit is None and reference.is_fast and isinstance(text, str):
            spans = token_spans(text, theirs.encodings[0], words.positions.tolist())
            if spans != words.spans:
                raise VerificationError(
                    f"the tokens of {text!r} must have transformers' spans, {spans} (got "
                    f"{words.spans}); report the tokenizer as a bug of fillmask"
                )
        compared += 1
    return {"reference": type(reference).__name__, "inputs": compared}


def _parts(text: InputText) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else (text.text, text.text_pair)


def _types(encoded: EncodedText) -> list[int] | None:
    types = encoded.token_types
    return None if types is None or not types.any() else types.tolist()


def _difference(
    text: InputText, reference: Any, ours: list[int], theirs: list[int]
) -> VerificationError:
    pairs = zip_longest(ours, theirs)
    place = next((index for index, (one, other) in enumerate(pairs) if one != other), 0)
    found, expected = (
        " ".join(reference.convert_ids_to_tokens(ids[place : place + 5])) for ids in (ours, theirs)
    )
    return VerificationError(
        f"{str(text)[:80]!r} must have the tokens of {type(reference).__name__} in transformers, "
        f"from token {place} {expected or 'none'} (got {found or 'none'}, or other token types); "
        "save an equal tokenizer as tokenizer.json, and set tokenizer_class to "
        "PreTrainedTokenizerFast in tokenizer_config.json"
    )

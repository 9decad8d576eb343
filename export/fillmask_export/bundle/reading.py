"""How a bundle reads texts: its tokenizer, compared with the published one, and its texts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

from fillmask.bundles.description import SpecialTokens
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.bundle.description_fields import special_tokens
from fillmask_export.bundle.tokens import check_tokens
from fillmask_export.sample_texts import MAX_UNKNOWN, GivenTexts, SampleTexts, unknown_share
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.tokenizers.special_tokens import read_tokenizer, separates_pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a bundle reads texts.

    Attributes:
        tokenizer_json: content of the bundle's tokenizer.json.
        fields: fields of bundle.json about its inputs.
        max_tokens: maximum length of an input in tokens, special tokens included.
        texts: sentences for the verification and the calibration.
        figures: result of the comparison with the published tokenizer, for bundle.json.
        notes: what the user should know, one sentence each.
    """

    tokenizer_json: bytes
    tokenizer: Tokenizer
    fields: dict[str, Any]
    max_tokens: int
    texts: SampleTexts
    figures: dict[str, Any]
    notes: list[str]

    @classmethod
    def of_checkpoint(
        cls,
        checkpoint: Checkpoint,
        texts: SampleTexts | GivenTexts,
        *,
        max_tokens: int | None,
        special: SpecialTokens | None,
        int8: bool,
    ) -> Self:
        """Prepare the tokenizer of a checkpoint and compare it with the published one.

        Args:
            max_tokens: maximum length that the user names, if any.
            special: how texts with special tokens are read, if the user has decided.

        Raises:
            CheckpointError: the checkpoint has no tokenizer, or it does not match the encoder.
            VerificationError: the bundle's tokenizer differs from the published one.
            ValueError: max_tokens is invalid, or int8 has only texts that the model can't read.
        """
        config, reference = checkpoint.model.config, checkpoint.reference
        content, mask_token = _tokenizer_of(checkpoint)
        notes = list(checkpoint.notes)
        if max_tokens is None:
            max_tokens = min(config.max_positions, checkpoint.max_length or config.max_positions)
        if not 3 <= max_tokens <= config.max_positions:
            raise ValueError(
                f"max_tokens must be from 3 to {config.max_positions} (got {max_tokens})"
            )
        if max_tokens == checkpoint.max_length != config.max_positions:
            notes.append(
                f"max_tokens is {max_tokens}, the length to which the published code truncates; "
                f"--max-tokens allows up to {config.max_positions}"
            )
        special_texts, mask_id, special_ids = special_tokens(content, mask_token, config)
        options: dict[str, Any] = {"pairs": False, "token_types": 1}
        if checkpoint.sparse is None:
            options = pair_fields(content, mask_token, config)
        if options["token_types"] > 1 and _omits_types(reference):
            options["token_types"] = 1
            notes.append(
                "the second text of a pair has token type 0, as in transformers' "
                f"{type(reference).__name__}, although the model has another type for it; to use "
                "that, add token_type_ids to model_input_names in tokenizer_config.json"
            )
        options |= _options(special, reference, special_texts)
        tokenizer = Tokenizer(content, mask_token, mask_id, special_ids, **options)
        figures: dict[str, Any] = {}
        if reference is not None:
            figures = check_tokens(tokenizer, reference, special_texts, max_tokens)
        if isinstance(texts, GivenTexts):
            texts = texts.complete(tokenizer)
        unknown = unknown_share(tokenizer, texts.verification)
        if unknown > MAX_UNKNOWN:
            notes.append(_unknown_note(unknown, texts, int8=int8))
        if checkpoint.truncates and checkpoint.sparse is not None:
            options["truncates"] = True
        return cls(
            tokenizer_json=content,
            tokenizer=tokenizer,
            fields={
                "max_tokens": max_tokens,
                "mask_token": mask_token,
                "mask_token_id": mask_id,
                "special_token_ids": special_ids,
                **options,
            },
            max_tokens=max_tokens,
            texts=texts,
            figures=figures | {"texts": texts.name, "unknown_share": unknown},
            notes=notes,
        )


def pair_fields(tokenizer_json: bytes, mask_token: str, config: EncoderConfig) -> dict[str, Any]:
    """Return `pairs`, whether the model reads pairs of texts, and `token_types` of their tokens.

    A model reads pairs if its tokenizer separates the two texts by special tokens. The model
    needs token types if the tokenizer gives the second text a type above 0 and the encoder has
    an embedding for this type.
    """
    tokenizer = read_tokenizer(tokenizer_json)
    # the mask token is the only text that is one token with every vocabulary
    pairs = separates_pairs(tokenizer, mask_token)
    highest = max(tokenizer.encode(mask_token, mask_token).type_ids)
    has_types = pairs and 0 < highest < config.type_vocab_size
    return {"pairs": pairs, "token_types": config.type_vocab_size if has_types else 1}


def _tokenizer_of(checkpoint: Checkpoint) -> tuple[bytes, str]:
    if checkpoint.tokenizer_json is None or checkpoint.mask_token is None:
        raise CheckpointError("the checkpoint has no tokenizer; add tokenizer.json")
    return checkpoint.tokenizer_json, checkpoint.mask_token


def _omits_types(reference: Any) -> bool:
    return reference is not None and "token_type_ids" not in reference.model_input_names


def _options(
    special: SpecialTokens | None, reference: Any, special_texts: Collection[str]
) -> dict[str, Any]:
    """Return `special_tokens` and `truncation_side`, where they aren't the default."""
    options: dict[str, Any] = {}
    if reference is not None:
        roles = {str(getattr(reference, name)) for name in reference.SPECIAL_TOKENS_ATTRIBUTES}
        in_texts = set(reference.all_special_tokens) - roles
        special = special or ("refuse" if in_texts.intersection(special_texts) else None)
        if reference.truncation_side != "right":
            options["truncation_side"] = reference.truncation_side
    if special not in {None, "literal"}:
        options["special_tokens"] = special
    return options


def _unknown_note(unknown: float, texts: SampleTexts, *, int8: bool) -> str:
    """Return a warning about texts that a model can't read.

    Raises:
        ValueError: the precision is int8, whose figures would mean nothing.
    """
    found = f"{100 * unknown:.0f} % of the tokens of {texts.name} are unknown to the tokenizer"
    advice = (
        "name texts that the model can read with --texts and --calibrate, or give it its own "
        "tokenizer (docs/tokenizers.md)"
    )
    if int8:
        raise ValueError(f"{found}, so that nothing tells how well int8 works; {advice}")
    return f"warning: {found}; {advice}"
